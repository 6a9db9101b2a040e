package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Polling takes at most an eighth of the time, and a poll that waited for a processor does not make
// polls rare.
func TestPaceOfPolls(t *testing.T) {
	var p pace
	p.polled(time.Millisecond, time.Millisecond+10*time.Microsecond)
	require.Equal(t, time.Millisecond+90*time.Microsecond, p.pollAt)
	p.polled(time.Second, time.Second+20*time.Millisecond)
	require.LessOrEqual(t, p.pollAt, time.Second+21*time.Millisecond)
}
