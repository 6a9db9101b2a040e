package file

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

func parseSample(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := Parse("sample.yaml", []byte(text), nil)
	require.NoError(t, err, text)
	return s
}

// Every sample is valid on a coarse grid, with the keys in its comments, too, which then change nothing.
func TestSamples(t *testing.T) {
	hidden := regexp.MustCompile(`(?m)^#([a-z]+: )`)
	for _, kind := range Kinds() {
		for d := range 4 {
			text, err := Sample(kind, d)
			require.NoError(t, err)
			s := parseSample(t, text)
			require.Equal(t, kind == "option", s.Option() != nil)
			if d > 0 {
				require.Equal(t, d, s.Dimension())
			}
			p, err := s.BuildValid([]int{9})
			require.NoError(t, err, text)
			require.Equal(t, kind == "moving" || kind == "option", p.Steps() > 0)
			all := hidden.ReplaceAllString(text, "$1")
			require.Equal(t, kind == "option", all == text)
			q, err := parseSample(t, all).BuildValid([]int{9})
			require.NoError(t, err, all)
			same(t, p, q)
		}
	}
	_, err := Sample("membrain", 2)
	require.ErrorContains(t, err, `no kind "membrain"; there are membrane`)
	_, err = Sample("membrane", 4)
	require.ErrorContains(t, err, "want 1, 2 or 3")
}

// A file written from a built-in problem is the same problem, with changed parameters, too.
func TestSamplesOfBuiltins(t *testing.T) {
	for _, b := range problems.All() {
		text, err := SampleOf(b)
		if !slices.Contains(Written(), b.Name) {
			require.ErrorContains(t, err, "problem "+b.Name+" cannot be written as a file")
			continue
		}
		require.NoError(t, err)
		compareSample(t, b, text)
		for _, change := range []string{"k=4.5", "c=-3", "r0=0.6", "eccentricity=0.3", "volatility=0.31", "width=3"} {
			other, err := b.With([]string{change})
			if err != nil {
				continue
			}
			text, err := SampleOf(other)
			require.NoError(t, err)
			compareSample(t, other, text)
		}
	}
	require.Subset(t, Written(), []string{"membrane", "torsion", "quartic2d", "bearing1d", "american-put",
		"perpetual-geometric"})
}

func compareSample(t *testing.T, b problems.Builtin, text string) {
	t.Helper()
	n, err := problems.Grid(b.Dimension, []int{9})
	require.NoError(t, err)
	want, err := b.Make(n)
	require.NoError(t, err)
	got, err := parseSample(t, text).BuildValid([]int{9})
	require.NoError(t, err, text)
	require.Equal(t, want.Lo, got.Lo)
	require.InDeltaSlice(t, want.Hi[:], got.Hi[:], 1e-12)
	same(t, want, got)
}

// same compares the functions of two problems on one grid, in the first and the last step.
func same(t *testing.T, want, got *problem.Problem) {
	t.Helper()
	require.Equal(t, want.Steps(), got.Steps())
	for _, step := range []int{min(1, want.Steps()), want.Steps()} {
		p, q := want.AtStep(step), got.AtStep(step)
		value := func(p *problem.Problem, f problem.Function, at problem.Point) float64 {
			if f == nil {
				return -1e9
			}
			return f(at)
		}
		for k := -1; k <= p.N[2]; k += 2 {
			for j := -1; j <= p.N[1]; j += 2 {
				for i := -1; i <= p.N[0]; i++ {
					at := p.At(i, j, k)
					require.InDelta(t, value(p, p.Obstacle, at), value(q, q.Obstacle, at), 1e-9)
					require.InDelta(t, value(p, p.Upper, at), value(q, q.Upper, at), 1e-9)
					require.InDelta(t, value(p, p.Boundary, at), value(q, q.Boundary, at), 1e-9)
					require.InDelta(t, p.Source.At(at), q.Source.At(at), 1e-9)
					require.InDelta(t, p.Diffusion.At(at), q.Diffusion.At(at), 1e-9)
				}
			}
		}
	}
}
