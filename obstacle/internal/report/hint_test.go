package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// A faster method is recommended by name, however the user chose the slow one, and not if the program chose it, would
// choose the same or does not know that the other one is faster.
func TestAlternativesHint(t *testing.T) {
	a := Alternatives{Otherwise: "multigrid"}
	for why, want := range map[string]string{
		"--method": "without --method, multigrid is chosen", "--step": "without --step, multigrid", "--order": "", "": "without --method",
		"that of the checkpoint": "with --method auto, multigrid", "no other method accepts this run": "", "estimated work": "",
	} {
		hint := a.Hint("richardson", why)
		require.Equal(t, want == "", hint == "", why)
		require.Contains(t, hint, want)
	}
	require.Empty(t, (&Alternatives{}).Hint("richardson", "--method"))
	require.Empty(t, (&Alternatives{Otherwise: "richardson"}).Hint("richardson", "--method"))
	for _, why := range []string{"--method", "--omega"} {
		require.Empty(t, a.Hint("sor", why), "whether multigrid is faster is not known")
		require.Contains(t, (&Alternatives{Otherwise: "multigrid", Faster: true}).Hint("sor", why), why+", multigrid is chosen, which")
	}
}

// Only a run that was long, or that was stopped after much work, recommends another method; one with Richardson whenever it
// was stopped. Out of lockstep it is a scheme.
func TestHint(t *testing.T) {
	const much = 2000
	faster := Alternatives{Otherwise: "multigrid", Faster: true}
	maybe := Alternatives{Otherwise: "multigrid"}
	flow := Alternatives{Alternates: "multigrid and sor"}
	async := Alternatives{Lockstep: "multigrid"}
	given := Alternatives{Otherwise: "multigrid", Omega: 1.99}
	for _, c := range []struct {
		method, why, reason string
		work                float64
		a                   Alternatives
		want                string
	}{
		{"richardson", "--method", launch.Converged, 4000, faster, ""},
		{"richardson", "--method", launch.Converged, 1e6, faster, "without --method, multigrid is chosen"},
		{"richardson", "--method", launch.Time, 10, faster, "without --method, multigrid is chosen"},
		{"richardson", "--method", launch.Time, 1e6, Alternatives{Otherwise: "richardson"}, ""},
		{"richardson", "--order", launch.Time, 1e6, faster, ""},
		{"sor", "--method", launch.Time, 10, faster, ""},
		{"sor", "--method", launch.Time, much, faster, "without --method, multigrid is chosen, which is probably faster"},
		{"sor", "--method", launch.Converged, 1e5, faster, "without --method, multigrid is chosen, which is probably faster"},
		{"sor", "--method", launch.Converged, 1e5, maybe, ""},
		{"sor", "--method", launch.Sweeps, much, maybe, "if sor converges too slowly here: without --method, multigrid is chosen"},
		{"sor", "--method", launch.Sweeps, 1e5, Alternatives{Otherwise: "sor"}, ""},
		{"sor", "--method", launch.Stagnated, 50, maybe, "if sor converges too slowly here: without --method, multigrid is chosen"},
		{"schwarz", "--overlap", launch.Stagnated, 50, maybe, "without --overlap, multigrid is chosen"},
		{"multigrid", "--method", launch.Stagnated, 50, maybe, ""},
		{"sor", "--method", launch.Stagnated, 50, Alternatives{Otherwise: "sor", Next: "multigrid"}, "try --method multigrid"},
		{"multigrid", "estimated", launch.Time, much, Alternatives{Next: "sor"}, "if multigrid converges too slowly here, try --method sor"},
		{"multigrid", "estimated", launch.Sweeps, 50, Alternatives{Next: "sor"}, ""}, // as expected
		{"multigrid", "estimated", launch.Stagnated, much, Alternatives{Next: "sor"}, ""},
		{"sor", "--method", launch.Sweeps, much, flow, "without --method, the run alternates between multigrid and sor"},
		{"sor", "--method", launch.Stagnated, much, flow, "without --method, the run alternates between multigrid and sor"},
		{"richardson", "--method", launch.Sweeps, much, flow, "without --method, the run alternates between multigrid and sor"},
		{"sor", "--method", launch.Sweeps, 50, flow, ""},
		{"richardson", "--method", launch.Sweeps, 50, flow, ""},
		{"sor", "--method", launch.Converged, 1e6, flow, ""},
		{"schwarz", "scheme async", launch.Stagnated, 50, async, "try --scheme sync, for which multigrid is chosen"},
		{"schwarz", "--method", launch.Time, much, async, "try --scheme sync, for which multigrid is chosen"},
		{"schwarz", "scheme async", launch.Time, 50, async, ""},
		{"sor", "--method", launch.Stagnated, 50, given, "sor converges too slowly with --omega 1.99: without that flag, it chooses"},
		{"sor", "--method", launch.Time, 50, given, ""},
		{"schwarz", "scheme async", launch.Converged, 1e5, async, ""},
	} {
		s := Solution{
			Method: c.method, MethodWhy: c.why, Scheme: "async", Reason: c.reason, SequentialEquivalentSweeps: c.work, Alternatives: c.a,
			RelativeResidual: 0.5,
		}
		if hint := s.hint(); c.want == "" {
			require.Empty(t, hint, c)
		} else {
			require.Contains(t, hint, c.want, c)
		}
		s.Evolution = &Evolution{}
		if c.a == faster || c.a == maybe {
			require.Empty(t, s.hint())
		}
	}
	s := Solution{Method: "schwarz", Reason: launch.Stagnated, Alternatives: async, RelativeResidual: 0.5, ReachableTolerance: nullable.NaN()}
	require.Equal(t, "stagnated: the residual has stopped falling", s.verdict())
	s.RelativeResidual = 1e-14
	require.Contains(t, s.verdict(), "by rounding")
	require.Empty(t, s.hint(), "by rounding, which no other method avoids")
}
