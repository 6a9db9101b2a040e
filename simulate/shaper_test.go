package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// A frame of 962 bytes takes 8 µs on the line, and 1000 bytes of tokens, which take 80 µs. Saved
// tokens let frames leave at once, one after the other on the line, and the rest leaves as tokens
// come. Frames arrive one by one, and those that find the queue full are lost.
func TestShaper(t *testing.T) {
	const wait = 20 + 8 // µs of latency, and of the port
	for _, c := range []struct {
		name   string
		shaper cluster.Shaper
		leave  []int // µs
	}{
		{"none saved", cluster.Shaper{Rate: 12.5e6, Queue: 1 << 20}, []int{80, 160, 240, 320, 400}},
		{"all at once", cluster.Shaper{Rate: 12.5e6, Burst: 5000, Queue: 1 << 20}, []int{8, 16, 24, 32, 40}},
		{"some at once", cluster.Shaper{Rate: 12.5e6, Burst: 4000, Queue: 1 << 20}, []int{8, 16, 24, 32, 80}},
		{"two too many", cluster.Shaper{Rate: 12.5e6, Queue: 3999}, []int{80, 160, 240}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := gigabit(2)
			m.Networks[0].Shaper = c.shaper
			e := still(m)
			h := e.hosts[0]
			h.now = microproto.Instant(time.Second)
			require.True(t, h.Carry(nil, 0, e.train(1, 5, 962)))
			var left []int
			for _, d := range e.deliveries() {
				require.Equal(t, 1, d.frames)
				left = append(left, int((d.at-time.Second)/time.Microsecond)-wait)
			}
			require.Equal(t, c.leave, left)
			require.EqualValues(t, 5-len(left), h.gone.Load())
			require.Zero(t, h.memory.lent.Load())
		})
	}
}

// A shaper in the machine makes asynchronous senders wait: newer values replace what waits in the node, and no frame is
// lost. One outside does not, and frames are lost. Both runs end.
func TestShaperAndSenders(t *testing.T) {
	for _, outside := range []bool{false, true} {
		m := gigabit(2)
		m.Networks[0].MTU = 576
		m.Networks[0].Shaper = cluster.Shaper{Rate: 60e6, Queue: 256 << 10, Outside: outside}
		for i := range m.Hosts {
			m.Hosts[i].Jitter = 0.2 // otherwise the same frames of every face would be lost
		}
		r, err := Run(context.Background(), runOf(t, m, membrane(15), iterate.Asynchronous(), 2))
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, r.Reason)
		lost, sent := uint64(0), uint64(0)
		for _, k := range r.Ranks {
			lost, sent = lost+k.Lost, sent+k.Segments
		}
		if outside {
			require.Greater(t, lost, sent/4)
		} else {
			require.Zero(t, lost)
		}
		require.LessOrEqual(t, float64(r.Ranks[0].Bytes)-float64(r.Ranks[0].Lost)*548,
			60e6*(r.Virtual+r.Setup).Seconds()+256<<10, "no more passes than the shaper lets")
	}
}

// Asynchronous peers flood a path with a queue outside the machines, which takes the same segments of every face and
// loses the others. Congestion control soon begins, and the run ends.
func TestFloodedPath(t *testing.T) {
	m := gigabit(2)
	m.Networks[0].Latency, m.Networks[0].MTU, m.Networks[0].Queue = time.Millisecond, 1500, 1<<20
	m.Networks[0].Shaper = cluster.Shaper{Rate: 25e6, Queue: 256 << 10, Outside: true}
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 3e8
	}
	r, err := Run(context.Background(), runOf(t, m, membrane(32), iterate.Asynchronous(), 2))
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, r.Reason)
	require.Less(t, r.Virtual, 500*time.Millisecond)
}
