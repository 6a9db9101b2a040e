package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Idle sessions wake no goroutine: the link's goroutine sleeps, and the timer's wakes once for each
// heartbeat. Heartbeats are the clock of this test.
func TestIdleSessionsWakeNoGoroutine(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, cluster := range []string{"one", "two"} {
		t.Run("to cluster "+cluster, func(t *testing.T) {
			t.Parallel()
			at := func(cluster string) func(*Config) {
				return func(c *Config) {
					c.Cluster, c.Catalog = cluster, ctp.Catalog()
					c.Rails[0].Network, c.Heartbeat = p2psap.Ethernet, 10*time.Millisecond
				}
			}
			a, b := start(t, "a", at("one")), start(t, "b", at(cluster))
			join(t, a, b)
			ctx := limit(t)
			for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
				sa, sb := open(t, a, b, options(m.String(), m))
				data := make([]byte, 512)
				for k := range 20 {
					_, err := sa.Send(ctx, 1, p2psap.Label(k+1), data)
					require.NoError(t, err)
					_, err = sb.Send(ctx, 1, p2psap.Label(k+1), data)
					require.NoError(t, err)
				}
			}
			pass := func(beats uint64) (sa, sb Stats) {
				wantA, wantB := a.Stats().ControlIn+beats, b.Stats().ControlIn+beats
				await.Until(t, func() bool {
					sa, sb = a.Stats(), b.Stats()
					return sa.ControlIn >= wantA && sb.ControlIn >= wantB
				}, "heartbeats")
				return sa, sb
			}
			pass(60) // acknowledgements and time-outs are over
			a0, b0 := pass(1)
			a1, b1 := pass(20)
			require.Equal(t, a0.LinkWakes, a1.LinkWakes)
			require.Equal(t, b0.LinkWakes, b1.LinkWakes)
			// Each wake sends a heartbeat. A timer that the system served late may wake once more, before the next is due.
			require.LessOrEqual(t, 2*(a1.TimerWakes-a0.TimerWakes), 3*(a1.ControlOut-a0.ControlOut))
			require.LessOrEqual(t, 2*(b1.TimerWakes-b0.TimerWakes), 3*(b1.ControlOut-b0.ControlOut))
			require.GreaterOrEqual(t, a1.ControlOut-a0.ControlOut, uint64(10), "the node's heart does not beat")
			require.GreaterOrEqual(t, b1.ControlOut-b0.ControlOut, uint64(10))
		})
	}
}
