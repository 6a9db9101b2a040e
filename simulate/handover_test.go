package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// An asynchronous thread that has a core of its own hands faces over and goes on, however far the protocol is behind on
// another core: here two sweeps of 5 µs bring more bytes than the protocol handles in 100 µs. If messages have a cost
// of their own, the thread waits for the protocol. On one core the protocol takes the thread's time.
func TestAsynchronousThreadDoesNotWaitForTheProtocol(t *testing.T) {
	relaxing := 8 * 8 * 8 * 10 * time.Nanosecond
	sweep := func(c cluster.Class) time.Duration {
		m := gigabit(8)
		m.Networks[0].Kind, m.Networks[0].Rate = cluster.IB, 2e9
		for i := range m.Hosts {
			c.Relaxation = m.Hosts[i].Relaxation
			m.Hosts[i].Class = c
		}
		return steadily(t, m, membrane(16), iterate.Asynchronous(), 8, func(r *Config) { r.Sweeps = 400 }).Steady
	}
	costs := cluster.Cost{Byte: 50}
	two := cluster.Class{Name: "two", Cores: 2, Send: costs, Receive: costs}
	require.Equal(t, relaxing, sweep(two))
	two.Send.Message = time.Nanosecond
	require.Greater(t, sweep(two), 2*relaxing)
	two.Send.Message, two.Cores = 0, 1
	require.Greater(t, sweep(two), relaxing)
}
