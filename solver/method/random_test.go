package method

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// randomSystem holds the properties of a random system.
type randomSystem struct {
	dim                  int
	n                    [3]int
	form                 kernel.Form
	convection, reaction float64
	lower, upper         bool
	rough                bool // obstacles are white noise
	jump                 float64
	parity               int
}

func drawSystem(t *rapid.T) randomSystem {
	c := randomSystem{dim: rapid.IntRange(1, 3).Draw(t, "dim"), n: [3]int{1, 1, 1}}
	for a := range c.dim {
		c.n[a] = rapid.IntRange(1, [4]int{0, 40, 12, 7}[c.dim]).Draw(t, "n")
	}
	c.form = kernel.Form(rapid.IntRange(0, 2).Draw(t, "form"))
	if c.form != kernel.Isotropic {
		c.convection = rapid.SampledFrom([]float64{0, 0, 3, 100}).Draw(t, "convection")
	}
	if c.form == kernel.Variable {
		c.jump = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "jump")
	}
	c.reaction = rapid.SampledFrom([]float64{0, 0, 10, 1e4}).Draw(t, "reaction")
	c.lower, c.upper = rapid.Bool().Draw(t, "lower"), rapid.Bool().Draw(t, "upper")
	c.rough = rapid.Bool().Draw(t, "rough")
	c.parity = rapid.IntRange(0, 1).Draw(t, "parity")
	return c
}

// system returns the system with random initial values.
func (c randomSystem) system(t require.TestingT, seed uint64) (System, []float64) {
	r := rand.New(rand.NewPCG(seed, 5))
	l, err := kernel.NewLayout(c.dim, c.n)
	require.NoError(t, err)
	s := System{Layout: l, Lower: kernel.NoLower(), Upper: kernel.NoUpper(), Parity: c.parity,
		Symmetric: c.convection == 0}
	s.Operator = c.operator(l, r)
	n := l.Points()
	f := make([]float64, n)
	phase := r.Float64()
	wave := func(d int) float64 {
		x := float64(d) / float64(n)
		if c.rough {
			return r.Float64() - 0.5
		}
		return 0.5 * math.Sin(9*x+6*phase)
	}
	for d := range f {
		f[d] = 20 * (r.Float64() - 0.5 + phase)
	}
	s.Source = kernel.Field{Array: f}
	if c.lower {
		s.Lower.Array = make([]float64, n)
		for d := range n {
			s.Lower.Array[d] = wave(d) - 0.2
		}
	}
	if c.upper {
		s.Upper.Array = make([]float64, n)
		for d := range n {
			s.Upper.Array[d] = wave(d) + 0.3
			if c.lower {
				s.Upper.Array[d] = s.Lower.Array[d] + r.Float64()
			}
		}
	}
	u := make([]float64, l.Len())
	for i := range u {
		u[i] = r.Float64() - 0.5 // the ghosts are boundary data
	}
	for d := range n {
		i := l.Index(d%l.N[0], d/l.N[0]%l.N[1], d/(l.N[0]*l.N[1]))
		u[i] = min(max(u[i], s.Lower.At(d)), s.Upper.At(d))
	}
	return averaged(s), u
}

// operator returns an M-matrix: diffusion, upwind differences, reaction.
func (c randomSystem) operator(l kernel.Layout, r *rand.Rand) kernel.Operator {
	row := func() [kernel.Directions]float64 {
		var v [kernel.Directions]float64
		for a := range c.dim {
			h := 1 / float64(c.n[a]+1)
			k := math.Exp(c.jump * (r.Float64() - 0.5) * 2)
			if c.form == kernel.Constant {
				k = 1 + float64(a)
			}
			v[kernel.West+2*a] = k/(h*h) + c.convection/h
			v[kernel.East+2*a] = k / (h * h)
			v[kernel.Center] += v[kernel.West+2*a] + v[kernel.East+2*a]
		}
		v[kernel.Center] += c.reaction
		return v
	}
	switch c.form {
	case kernel.Isotropic:
		return kernel.Operator{Diag: 2*float64(c.dim)*100 + c.reaction, Off: 100}
	case kernel.Constant:
		return kernel.Operator{Form: kernel.Constant, Values: row()}
	}
	op := kernel.Operator{Form: kernel.Variable}
	for k := range 1 + 2*c.dim {
		op.Arrays[k] = make([]float64, l.Points())
	}
	for d := range l.Points() {
		for k, v := range row() {
			if k < 1+2*c.dim {
				op.Arrays[k][d] = v
			}
		}
	}
	if c.convection == 0 {
		symmetrise(l, &op)
	}
	return op
}

// symmetrise sets the coefficients of both points of an edge to their mean.
func symmetrise(l kernel.Layout, op *kernel.Operator) {
	stride := [3]int{1, l.N[0], l.N[0] * l.N[1]}
	for d := range l.Points() {
		at := [3]int{d % l.N[0], d / l.N[0] % l.N[1], d / stride[2]}
		for a := range l.Dim {
			if at[a]+1 < l.N[a] {
				east, west := &op.Arrays[kernel.East+2*a][d], &op.Arrays[kernel.West+2*a][d+stride[a]]
				m := (*east + *west) / 2
				op.Arrays[kernel.Center][d] += m - *east
				op.Arrays[kernel.Center][d+stride[a]] += m - *west
				*east, *west = m, m
			}
		}
	}
}

// reference solves the system by projected Gauss–Seidel relaxation, point by point.
func reference(t require.TestingT, s System, u []float64) []float64 {
	sweep := referenceSweep(t, s)
	r0 := 0.0
	for k := range 1 << 16 {
		if k%64 == 0 {
			var n kernel.Norm
			sweep.Residual(&n, u, s.Layout.Interior())
			if k == 0 {
				r0 = n.L2()
			}
			if n.L2() <= 1e-11*r0 {
				return interior(s.Layout, u)
			}
		}
		sweep.RelaxColour(u, 0, 1, s.Layout.Interior())
		sweep.RelaxColour(u, 1, 1, s.Layout.Interior())
	}
	require.Fail(t, "the reference solution does not converge")
	return nil
}

// Every method converges to the solution from any start for any system.
func TestEveryMethodAlwaysConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, seed := drawSystem(t), rapid.Uint64().Draw(t, "seed")
		s, start := c.system(t, seed)
		want := reference(t, s, append([]float64(nil), start...))
		sweep, err := s.sweep(1)
		require.NoError(t, err)
		residual := func(u []float64) float64 {
			var n kernel.Norm
			sweep.Residual(&n, u, s.Layout.Interior())
			return n.L2()
		}
		r0 := residual(start)
		for _, o := range []Options{{Cycle: "v"}, {Cycle: "w"}} {
			for _, full := range []bool{true, false} {
				m, err := New(NameMultigrid, s, o)
				require.NoError(t, err)
				u := append([]float64(nil), start...)
				if full {
					m.Start(u)
					m.Cycle(u)
				}
				for cycles := 0; residual(u) > 1e-9*r0; cycles++ {
					require.Less(t, cycles, 3000, "residual %v of %v; %s", residual(u), r0, m.Describe())
					m.Cycle(u)
				}
				require.InDeltaSlice(t, want, interior(s.Layout, u), 1e-6, m.Describe())
			}
		}
		m, err := New(NameSOR, s, Options{})
		require.NoError(t, err)
		u := append([]float64(nil), start...)
		for k := 0; residual(u) > 1e-9*r0; k++ {
			require.Less(t, k, 20000, m.Describe())
			m.Cycle(u)
		}
		require.InDeltaSlice(t, want, interior(s.Layout, u), 1e-6, m.Describe())
	})
}
