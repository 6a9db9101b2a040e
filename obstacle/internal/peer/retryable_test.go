package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A dial that gets no reply is tried again, as one that is refused: another address of the launcher may answer.
func TestRetryable(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("no rendezvous: %w", &net.OpError{Op: "dial", Net: "tcp", Err: err})
	}
	for err, want := range map[error]bool{
		dial(os.ErrDeadlineExceeded):                                true,
		dial(syscall.ECONNREFUSED):                                  true,
		dial(syscall.ETIMEDOUT):                                     true,
		dial(errors.New("no such host")):                            false,
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}:       false,
		errors.New("the rendezvous does not know the run's secret"): false,
	} {
		require.Equal(t, want, retryable(err), "%v", err)
	}
}
