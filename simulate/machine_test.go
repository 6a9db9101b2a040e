package simulate

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// Between the frames of a slow train the protocol's core does other work: a train that takes a
// millisecond on the line costs no more than its frames.
func TestSlowTrainLeavesProtocolFree(t *testing.T) {
	run := runOf(t, gigabit(2), membrane(7), iterate.Synchronous(), 2)
	e, err := newEngine(&run)
	require.NoError(t, err)
	m := e.hosts[0]
	_, to := m.chargeSegments(0, microproto.Instant(time.Millisecond), 10*time.Microsecond, 10, false)
	require.Equal(t, microproto.Instant(1001*time.Microsecond), to, "the last frame is handled when it is there")
	require.Equal(t, microproto.Instant(10*time.Microsecond), m.protocol)
	from, to := m.chargeSegments(0, 0, 20*time.Microsecond, 2, true)
	require.Equal(t, []microproto.Instant{20_000, 30_000}, []microproto.Instant{from, to},
		"what is sent meanwhile waits for the processor only")
}
