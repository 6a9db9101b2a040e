package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// plain returns a scenario without faults: a membrane on slabs.
func plain(t *testing.T, n [3]int, peers int, scheme iterate.Scheme) *Scenario {
	t.Helper()
	part, err := problem.Slabs(n, peers, nil)
	require.NoError(t, err)
	s := &Scenario{
		Seed: 7, What: "membrane", Partition: part, Scheme: scheme, Tolerance: 1e-3, Every: 8, Lag: 4,
		Repeat: 2 * time.Millisecond, MTU: 1400, Control: ControlFaults{Delay: 100 * time.Microsecond},
		After: mptest.Faults{Delay: 100 * time.Microsecond, Jitter: 20 * time.Microsecond},
	}
	s.Faults = s.After
	s.Problem = &problem.Problem{
		Name: "membrane", Dimension: 3, N: n, Hi: problem.Point{1, 1, 1}, Diffusion: problem.Coefficient{Value: 1},
		Obstacle: func(q problem.Point) float64 {
			x := q[0] - 0.5
			y := q[1] - 0.5
			z := q[2] - 0.5
			return 0.5 - 4*(x*x+y*y+z*z)
		},
		Boundary: func(problem.Point) float64 { return 0 },
	}
	for range peers {
		s.Costs = append(s.Costs, Cost{Point: 20 * time.Nanosecond, Slow: 1, Send: time.Microsecond})
	}
	return s
}

type filter func(now microproto.Instant, from, to iterate.Rank, session string, frame []byte) bool

func play(t *testing.T, s *Scenario, f filter) *Result {
	t.Helper()
	c, err := New(s)
	require.NoError(t, err)
	c.Filter = f
	r, err := c.runAndCheck()
	require.NoError(t, err)
	return r
}

// TestLastHaloLost loses each of the last halo frames from one peer to another, with all that follow
// for a while. The run must end with the required residual. A run without faults gives the number of
// frames.
func TestLastHaloLost(t *testing.T) {
	for _, scheme := range []iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(0), iterate.BoundedDelay(1),
		iterate.BoundedDelay(5)} {
		t.Run(scheme.Name(), func(t *testing.T) {
			count := 0
			halo := func(from, to iterate.Rank, session string) bool { return from == 0 && to == 1 && session == "halo" }
			play(t, plain(t, [3]int{6, 6, 6}, 3, scheme), func(_ microproto.Instant, from, to iterate.Rank, session string,
				_ []byte) bool {
				if halo(from, to, session) {
					count++
				}
				return true
			})
			require.Greater(t, count, 10)
			for _, back := range []int{1, 2, 3, 10, count / 2} {
				for _, gap := range []time.Duration{0, 3 * time.Millisecond, 50 * time.Millisecond} {
					k := 0
					lost := 0
					until := microproto.Never
					r := play(t, plain(t, [3]int{6, 6, 6}, 3, scheme), func(now microproto.Instant, from, to iterate.Rank,
						session string, _ []byte) bool {
						if !halo(from, to, session) {
							return true
						}
						if k++; k == count-back+1 {
							until = now.Add(gap)
						}
						if until != microproto.Never && now <= until {
							lost++
							return false
						}
						return true
					})
					require.Positive(t, lost, fmt.Sprint(back, gap))
					require.Equal(t, iterate.Converged, r.Outcomes[0].Reason)
				}
			}
		})
	}
}

// TestHalosLostForEver loses all halos of one peer from the middle of the run on. Snapshots carry
// faces on the agreement sessions, so an asynchronous run ends, and ends correctly.
func TestHalosLostForEver(t *testing.T) {
	r := play(t, plain(t, [3]int{6, 6, 6}, 2, iterate.Asynchronous()), func(now microproto.Instant, from, _ iterate.Rank,
		session string, _ []byte) bool {
		return from != 0 || session != "halo" || now < microproto.Instant(6*time.Millisecond)
	})
	require.Equal(t, iterate.Converged, r.Outcomes[0].Reason)
	require.Greater(t, r.Outcomes[0].Snapshots, 1)
}

// TestSlowPeer: the synchronous scheme waits for a peer that is ten times slower in every sweep, and
// the asynchronous scheme does not.
func TestSlowPeer(t *testing.T) {
	sweeps := map[string][]iterate.Iteration{}
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		s := plain(t, [3]int{6, 6, 8}, 4, scheme)
		for i := range s.Costs {
			s.Costs[i].Point = 2 * time.Microsecond
		}
		s.Costs[2].Slow = 10
		r := play(t, s, nil)
		for _, o := range r.Outcomes {
			sweeps[scheme.Name()] = append(sweeps[scheme.Name()], o.Sweeps)
		}
	}
	sync, async := sweeps["sync"], sweeps["async"]
	for rank := range sync {
		require.Equal(t, sync[0], sync[rank])
	}
	require.Greater(t, async[0], 4*async[2], "the cost model makes peer 2 slow, and nobody waits for it")
	require.LessOrEqual(t, async[2], sync[2]+16, "a slow peer needs no more sweeps of its own")
}

// TestCostOfRelaxing tests the cost model.
func TestCostOfRelaxing(t *testing.T) {
	c := Cost{Point: 20 * time.Nanosecond, Slow: 2.5}
	require.Equal(t, 5*time.Microsecond, c.Relax(100))
	require.Equal(t, time.Nanosecond, c.Relax(0), "time always passes")
}
