package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// For white noise as coefficients and obstacle, cycles alone stall, oscillate or diverge. With the safeguard
// they converge.
func TestSafeguardGuaranteesConvergence(t *testing.T) {
	for _, seed := range []uint64{45, 75, 225, 435, 885} {
		c := randomSystem{dim: 1, n: [3]int{31, 1, 1}, form: kernel.Variable, jump: 1, lower: true, rough: true}
		s, start := c.system(t, seed)
		r0 := residualOf(t, s, start)
		m, err := NewMultigrid(s, Options{})
		require.NoError(t, err)
		u := append([]float64(nil), start...)
		m.levels[0].Values = u
		for range 300 {
			m.runAll(m.cycle)
		}
		require.False(t, residualOf(t, s, u) <= 1e-3*r0, "seed %d: it converges without the safeguard", seed)
		u = append([]float64(nil), start...)
		m.Changed()
		cycles, _ := solve(t, m, s, u, r0, 1e-9, 200)
		t.Logf("seed %d: %d cycles, %d not accepted", seed, cycles, m.Rejections())
		require.Positive(t, m.Rejections())
		require.InDeltaSlice(t, reference(t, s, append([]float64(nil), start...)), interior(s.Layout, u), 1e-6)

		// The same holds for a local solver, which calls Changed before every cycle.
		u = append([]float64(nil), start...)
		for k := 0; residualOf(t, s, u) > 1e-9*r0; k++ {
			require.Less(t, k, 400)
			m.Changed()
			m.Cycle(u)
		}
	}
}

func TestSafeguardDecisions(t *testing.T) {
	for _, symmetric := range []bool{true, false} {
		g := NewSafeguard(symmetric, false)
		require.Equal(t, Accepted, g.Evaluate(1))
		require.Equal(t, Accepted, g.Evaluate(0.8))
		want := Rejected
		if symmetric {
			want = Undecided
		}
		require.Equal(t, want, g.Evaluate(0.7), "reduced by less than required")
		require.Equal(t, Rejected, g.Evaluate(math.NaN()))
		require.Equal(t, Rejected, g.Evaluate(math.Inf(1)))
		require.Equal(t, Accepted, g.EvaluateEnergy(-1e-300, 5))
		require.Equal(t, Rejected, g.EvaluateEnergy(0, 5))
		first := g.Sweeps()
		require.Equal(t, Rejected, g.EvaluateEnergy(1, 5))
		require.Equal(t, 2*first, g.Sweeps(), "more sweeps after each rejection")
		g.AcceptRelaxed(0.1)
		require.NotEqual(t, Accepted, g.Evaluate(0.09))
		require.Equal(t, Accepted, g.Evaluate(0.08))
		require.Zero(t, g.Sweeps())
		g.Changed()
		if symmetric {
			require.Equal(t, Undecided, g.Evaluate(1), "no residual to compare with")
			require.Equal(t, Accepted, g.EvaluateEnergy(-1, 1))
		} else {
			require.Equal(t, Accepted, g.Evaluate(1))
		}
		require.Equal(t, Accepted, g.Evaluate(0.5))
	}
}

// With a weak flow the energy decides about a bounded number of cycles that do not reduce the residual.
func TestSafeguardTrustsTheEnergyForAWhile(t *testing.T) {
	for _, weak := range []bool{true, false} {
		g := NewSafeguard(!weak, weak)
		require.Equal(t, Accepted, g.Evaluate(1))
		for round := range 3 {
			for range maxTrusted {
				require.Equal(t, Undecided, g.Evaluate(1))
				require.Equal(t, Accepted, g.EvaluateEnergy(-1, 1))
			}
			require.Equal(t, Undecided, g.Evaluate(1))
			want := Accepted
			if weak {
				want = Rejected
			}
			require.Equal(t, want, g.EvaluateEnergy(-1, 1), round)
			g.AcceptRelaxed(math.Pow(0.79, float64(round+1)))
		}
	}
	weak := NewSafeguard(false, true)
	residual := 1.0
	weak.Begin(residual, false)
	for range 10 * maxTrusted { // a slow but steady reduction needs no relaxation
		residual *= 0.97
		require.Equal(t, Undecided, weak.Evaluate(residual))
		require.Equal(t, Accepted, weak.EvaluateEnergy(-1, residual))
	}
}

// energy returns twice the change of the energy in a cycle.
func TestEnergyIsTheChangeInACycle(t *testing.T) {
	c := randomSystem{dim: 2, n: [3]int{9, 7, 1}, form: kernel.Variable, jump: 1, lower: true}
	s, u := c.system(t, 3)
	m, err := NewMultigrid(s, Options{})
	require.NoError(t, err)
	l := s.Layout
	energy := func(u []float64) float64 {
		au := make([]float64, l.Len())
		m.levels[0].Sweep.Apply(au, u, l.Interior())
		sum := 0.0
		for d := range l.Points() {
			i := l.Index(d%l.N[0], d/l.N[0], 0)
			// Boundary data occur once in A·u, and once in the energy.
			own := u[i] * (au[i]/2 - s.Source.At(d))
			x, y := d%l.N[0], d/l.N[0]
			for k, at := range []struct{ edge, i int }{{x, i - 1}, {l.N[0] - 1 - x, i + 1}, {y, i - l.Row},
				{l.N[1] - 1 - y, i + l.Row}} {
				if at.edge == 0 {
					own -= u[i] * s.Operator.Arrays[kernel.West+k][d] * u[at.i] / 2
				}
			}
			sum += own
		}
		return sum
	}
	m.levels[0].Values = u
	copyPoints(l, m.saved, u, l.Interior())
	before := energy(u)
	m.run(Stage{Kind: Relax, Sweeps: 2, Omega: 1})
	require.InEpsilon(t, 2*(energy(u)-before), m.energy(), 1e-9)
	require.Negative(t, m.energy())
}
