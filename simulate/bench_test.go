//go:build unix

package simulate

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// BenchmarkSegments measures segments and events per second of processor time, with relaxations of
// 32³ points per peer, and of 4³, where almost only messages count.
func BenchmarkSegments(b *testing.B) {
	for _, side := range []int{4, 32} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			b.Run(fmt.Sprintf("64 peers of %d/%s", side, s.Name()), func(b *testing.B) {
				m := gigabit(64)
				for i := range m.Hosts {
					m.Hosts[i].Send.Segment, m.Hosts[i].Receive.Segment = 1000, 1000
				}
				if side == 4 {
					m.Networks[0].Rate = 1.25e9
				}
				m.Networks[0].Kind = cluster.Ether
				segments, events := uint64(0), uint64(0)
				began := processorTime()
				for b.Loop() {
					run := runOf(b, m, membrane(4*side), s, 64)
					if side == 4 {
						run.Scale = 8
					}
					run.Sweeps = 100
					r, err := Run(context.Background(), run)
					require.NoError(b, err)
					for _, k := range r.Ranks {
						segments += k.Segments
					}
					events += r.Events
				}
				took := processorTime() - began
				b.ReportMetric(float64(segments)/took, "segments/cpu-s")
				b.ReportMetric(float64(events)/took, "events/cpu-s")
			})
		}
	}
}

// processorTime returns the processor time of this process in seconds.
func processorTime() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
