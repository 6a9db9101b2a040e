package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Frames that a backplane cannot carry at once wait in the queues of all ports. Frames that do not fit are lost
// (ether), or stay at their sender (ib).
func TestFullBackplane(t *testing.T) {
	send := func(kind string) *engine {
		m := gigabit(4)
		k := &m.Networks[0]
		k.Kind, k.Queue, k.Backplane = kind, 5000, 125e6 // that of one line; 20 frames of a thousand bytes in all
		e := still(m)
		for _, from := range []int{0, 1} {
			require.True(t, e.hosts[from].Carry(nil, 0, e.train(2+from, 60, 962)))
		}
		return e
	}
	e := send(cluster.Ether)
	got := e.deliveries()
	require.InDelta(t, 60+20, got[0].frames+got[1].frames, 1, "one leaves while two come, and twenty wait in the end")
	require.EqualValues(t, 120, got[0].frames+got[1].frames+int(e.hosts[0].gone.Load()+e.hosts[1].gone.Load()))

	e = send(cluster.IB)
	got = e.deliveries()
	require.Equal(t, 120, got[0].frames+got[1].frames)
}

// Fast senders of an asynchronous run fill neither a network with queues nor the memory. Queues without a bound end the
// run with an error.
func TestNetworksAreBounded(t *testing.T) {
	defer func(bytes, each int64, every int) { mostLent, mostLentEach, watchEvery = bytes, each, every }(mostLent,
		mostLentEach, watchEvery)
	mostLent, mostLentEach, watchEvery = 1<<20, 0, 64
	for _, c := range []struct {
		kind      string
		backplane float64
	}{{cluster.IB, 25e6}, {cluster.IB, 0}, {cluster.Ether, 25e6}, {cluster.Ether, 0}} {
		m := gigabit(8)
		k := &m.Networks[0]
		k.Kind, k.Rate, k.Latency, k.MTU, k.Queue, k.Backplane = c.kind, 12.5e6, time.Microsecond, 300, 1200, c.backplane
		for i := range m.Hosts {
			m.Hosts[i].Class = cluster.Class{Name: "fast", Cores: 2, Relaxation: 5e5,
				Send: cluster.Cost{Message: 2 * time.Microsecond}, Receive: cluster.Cost{Segment: time.Microsecond}}
		}
		m.Hosts[0].Slow = 20
		run := runOf(t, m, membrane(5), iterate.Asynchronous(), 8)
		run.Solver.Tolerance, run.SendQueue, run.Until = 1e-3, 20000, time.Minute
		out, err := Run(t.Context(), run)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, iterate.Converged, out.Reason)

		if c.backplane == 0 {
			continue // each port gets what one line carries
		}
		k.Queue, run.Solver.Tolerance = 0, 1e-12
		_, err = Run(t.Context(), run)
		require.ErrorContains(t, err, "give each network of the description a queue", "%+v", c)
	}
}
