package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// The error of a connection that was not opened in time names the flag that gives it more.
func TestUnconnectedSaysWhatToDo(t *testing.T) {
	m := &rendezvous.Member{Rank: 1, Host: "b", Control: "192.0.2.2:7000"}
	late := fmt.Errorf("driver: %w; the first round trip to it took 4s", context.DeadlineExceeded)
	err := unconnected(m, 10*time.Second, late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the first round trip to it took 4s; connecting takes up to six round trips, and has 3 times the 10s of --peer-timeout")
	require.EqualError(t, unconnected(m, 10*time.Second, errors.New("refused")),
		"cannot connect to peer 1 on b at 192.0.2.2:7000: refused")
}
