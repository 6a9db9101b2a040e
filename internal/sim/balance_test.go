package sim

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// uneven returns four peers with equal slabs of a long box; a point takes 1 µs.
func uneven(t *testing.T, scheme iterate.Scheme, balance bool) *Scenario {
	s := plain(t, [3]int{8, 8, 40}, 4, scheme)
	s.Balance = balance
	s.Window = 5 * time.Millisecond
	s.Tolerance = 1e-5
	for i := range s.Costs {
		s.Costs[i].Point = time.Microsecond
	}
	return s
}

// One of four peers is five times slower, or becomes ten times slower during the run, or fast again.
// Planes move, the bits (in lockstep) or the residual are right, which play checks, and the run
// takes less virtual time.
func TestBalance(t *testing.T) {
	for i, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Asynchronous(),
		iterate.Hybrid([]int{0, 0, 1, 1})} {
		for name, c := range map[string]struct {
			tune func(s *Scenario)
			gain float64
		}{
			"5 times slower": {func(s *Scenario) { s.Costs[2].Slow = 5 }, 2},
			"10 times slower in mid-run": {func(s *Scenario) { s.SpeedChanges = []SpeedChange{{200 * time.Millisecond, 1, 10}} },
				2},
			"20 times slower, then as fast": {func(s *Scenario) {
				s.SpeedChanges = []SpeedChange{{100 * time.Millisecond, 0, 20},
					{500 * time.Millisecond, 0, 1}}
			}, 1},
		} {
			t.Run(scheme.Name()+"/"+name, func(t *testing.T) {
				if testing.Short() && (c.gain == 1 || (name == "5 times slower") != (i%3 == 0)) {
					t.Skip("-short")
				}
				t.Parallel()
				var took [2]time.Duration
				planes := 0
				for i, balance := range []bool{false, true} {
					s := uneven(t, scheme, balance)
					c.tune(s)
					r := play(t, s, nil)
					require.Equal(t, iterate.Converged, r.Outcomes[0].Reason)
					took[i], planes = r.Virtual, r.Planes
				}
				t.Logf("%.3f s without, %.3f s with %d planes moved", took[0].Seconds(), took[1].Seconds(), planes)
				require.Positive(t, planes)
				require.Less(t, c.gain*took[1].Seconds(), took[0].Seconds())
			})
		}
	}
}
