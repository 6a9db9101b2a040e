package solver

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// work estimates what the methods need for a problem on one peer, in sweeps over the grid, for each time step. Contact is
// neglected; it lowers the numbers of richardson and sor.
type work struct {
	richardson, sor, multigrid float64

	steps     bool
	flow      bool    // strong at some point
	dominates bool    // it dominates the diffusion on the whole domain: the estimates, which neglect it, do not hold
	turns     bool    // a strong flow changes its direction: SOR may be very slow
	symmetric bool    // nothing flows
	corners   bool    // cells of high and of low diffusion meet at corners
	diffusion float64 // largest / smallest sampled diffusion
}

const (
	// firstSweeps are those of sor and richardson before they contract at their rates.
	firstSweeps = 5
	// sweepsPerDecade × log10(1/tolerance) is about the work of multigrid in two and three dimensions, where the coarse
	// grids are small and contain only points of the fine grid. The factors apply in other cases.
	sweepsPerDecade = 4
	factorOneAxis   = 1.7
	factorNotNested = 1.4
	// cornerContrast is the ratio of diffusion at corners from which multigrid is slower than sor: in checkerboards of 64
	// cells, multigrid needs less work at a ratio of 12 and more at a ratio of 100.
	cornerContrast = 50
	// boxContrast is the ratio of diffusion from which Schwarz converges slowly where a face cuts a region.
	boxContrast = 200
	// strongFlow is the cell Péclet number above which differences are one-sided.
	strongFlow = 2
	// dominantFlow is the Péclet number of the domain above which estimates do not hold: on 63² points those of SOR and
	// multigrid are too low by up to 1.5 for a constant flow of 10, by 4 for 60, and by hundreds for 30 out of the domain. A
	// reaction, or a short time step, weakens a flow.
	dominantFlow = 10
)

// estimateWork estimates the work for one time step of p. A value that is no number favours no method.
func estimateWork(p *problem.Problem, tolerance float64) work {
	w := work{steps: p.Steps() > 0}
	q := p.AtStep(min(1, p.Steps()))
	s := sampleOperator(q)
	w.flow, w.turns, w.dominates = s.crossing > 0, s.turns, s.dominates
	w.symmetric, w.corners, w.diffusion = s.symmetric, s.corners, s.highest/s.lowest
	digits := math.Log(1 / cmp.Or(tolerance, DefaultTolerance))
	// A point Jacobi sweep multiplies the error by about rho.
	gap := min(1, max(s.eigenvalue/s.diagonal, 1e-15))
	w.richardson = firstSweeps + digits/-math.Log1p(-min(gap, 1-1e-9))
	omega := method.OptimalOmega(1 - gap)
	w.sor = firstSweeps + digits/-math.Log(max(omega-1, 1e-9)) + s.crossing/3 // a sweep carries values over several points
	w.multigrid = sweepsPerDecade * digits / math.Ln10
	if p.Dimension == 1 {
		w.multigrid *= factorOneAxis
	}
	h := method.NewHierarchy(p.Dimension, p.N, s.strength)
	if h.Coarsest() > 0 && !h.Nested(0) {
		w.multigrid *= factorNotNested
	}
	w.multigrid += s.crossing / 2 // as measured: relaxation carries values along a strong flow, and coarse grids do not help
	return w
}

// jumps reports whether the diffusion varies so much that Schwarz may be slow.
func (w *work) jumps() bool { return w.diffusion > boxContrast }

// against returns what speaks against a method that was not chosen.
func (w *work) against(name string, lockstep bool) string {
	switch {
	case name == problem.FAS && (w.jumps() || w.corners):
		return "the diffusion varies much: beside contact, its coarse grids may not represent that"
	case name == problem.Schwarz || name == problem.FAS:
		return "for other schemes than sync, and for peers in several clusters"
	case name != problem.Richardson && !lockstep:
		return "it needs all peers at the same iterate; --method " + name + " makes it the method of each peer on its box"
	case name == problem.Multigrid && w.corners:
		return cornersText
	}
	return w.needs(name)
}

const cornersText = "cells of high and of low diffusion meet at corners, which the coarse grids of multigrid do not represent"

const turnsText = "a strong flow changes its direction, which the coarse grids of multigrid do not represent"

// needs returns the estimate for a method as text.
func (w *work) needs(name string) string {
	switch v, known := w.estimate(name); {
	case known:
		return "about " + rounded(v) + " sweeps"
	case w.dominates:
		return "not known for flows that dominate"
	case name != problem.Richardson && w.turns:
		return "unknown, since a strong flow changes its direction"
	case name == problem.Richardson && w.flow:
		return "unknown, since the flow is strong"
	}
	return "unknown, since the diffusion varies by a factor of " + rounded(w.diffusion)
}

// estimate returns the estimate for a method, false if it is unknown.
func (w *work) estimate(name string) (sweeps float64, known bool) {
	v, known := map[string]float64{problem.Richardson: w.richardson, problem.SOR: w.sor, problem.Multigrid: w.multigrid}[name]
	switch {
	case w.dominates, name == problem.Richardson && w.flow, name != problem.Richardson && w.turns, name != problem.Multigrid && w.jumps():
		return 0, false
	}
	return v, known
}

// compared returns the estimates, that of a method first.
func (w *work) compared(name string) string {
	if w.dominates {
		return "the flow dominates the diffusion, so that the work is not known"
	}
	out := "estimated work"
	if w.steps {
		out += " per time step"
	}
	out += ": " + w.needs(name)
	for _, other := range []string{problem.Multigrid, problem.SOR, problem.Richardson} {
		if other != name {
			out += "; " + other + ": " + strings.TrimSuffix(w.needs(other), " sweeps")
		}
	}
	return out
}

// rounded returns a positive number, rounded up to two digits.
func rounded(v float64) string {
	if !(v < 1e15) {
		return "1e15 or more"
	}
	unit := math.Pow(10, math.Floor(math.Log10(max(v, 1)))-1)
	return fmt.Sprintf("%.0f", math.Ceil(v/max(unit, 1))*max(unit, 1))
}

// operatorSample is what rows of A at a lattice of grid points show.
type operatorSample struct {
	eigenvalue float64 // about the smallest one
	diagonal   float64 // largest entry
	strength   [3]float64
	lowest     float64 // diffusion
	highest    float64
	crossing   float64 // points along the axes of a strong flow
	turns      bool
	dominates  bool
	symmetric  bool
	corners    bool
}

// samplesPerAxis bounds the lattice by dimension.
var samplesPerAxis = [4]int{1: 64, 2: 32, 3: 16}

// sampleOperator samples A. It evaluates no obstacle and no source.
func sampleOperator(p *problem.Problem) operatorSample {
	s := operatorSample{lowest: math.Inf(1), symmetric: true}
	st := problem.NewStencil(p)
	var lattice problem.Box
	var every [3]int
	for a, n := range p.N {
		every[a] = (n + samplesPerAxis[p.Dimension] - 1) / samplesPerAxis[p.Dimension]
		lattice.Hi[a] = (n + every[a] - 1) / every[a]
	}
	if st.Constant() {
		lattice.Hi = [3]int{1, 1, 1}
	}
	size := lattice.Size()
	diffusion := make([]float64, 0, lattice.Points())
	var fast, up, down [3]bool
	for _, idx := range lattice.Each {
		for a := range idx {
			idx[a] = 1 + (idx[a]-1)*every[a]
		}
		row := st.At(idx)
		s.diagonal = max(s.diagonal, row[kernel.Center])
		lowest := row[kernel.Center]
		here := p.At(idx[0], idx[1], idx[2])
		kappa := p.Diffusion.At(here)
		diffusion = append(diffusion, kappa)
		s.lowest, s.highest = min(s.lowest, kappa), max(s.highest, kappa)
		for a := range p.Dimension {
			low, high := row[kernel.West+2*a], row[kernel.East+2*a]
			between := math.Sqrt(max(0, low*high))
			lowest -= 2 * between * math.Cos(math.Pi/float64(p.N[a]+1))
			s.strength[a] += (low + high) / float64(lattice.Points())
			b := p.Velocity[a].At(here)
			s.symmetric = s.symmetric && b == 0
			up[a], down[a] = up[a] || b > 0, down[a] || b < 0
			length := p.Hi[a] - p.Lo[a]
			s.dominates = s.dominates || math.Abs(b)*length > dominantFlow*(kappa+max(0, p.Reaction.At(here))*length*length)
			fast[a] = fast[a] || math.Abs(b)*p.Spacing(a) > strongFlow*kappa
		}
		s.eigenvalue += lowest / float64(lattice.Points())
	}
	for a := range p.Dimension {
		if fast[a] {
			s.crossing += float64(p.N[a])
			s.turns = s.turns || up[a] && down[a]
		}
	}
	if !p.Diffusion.Constant() {
		s.corners = cornersIn(diffusion, size)
	}
	return s
}

// cornersIn reports whether two opposite values of four neighbours in a plane exceed the two others by far.
func cornersIn(v []float64, size [3]int) bool {
	stride := [3]int{1, size[0], size[0] * size[1]}
	for d, idx := range (problem.Box{Hi: size}).Each {
		for a := range 3 {
			b := (a + 1) % 3
			if idx[a] >= size[a] || idx[b] >= size[b] {
				continue
			}
			here, far, one, two := v[d], v[d+stride[a]+stride[b]], v[d+stride[a]], v[d+stride[b]]
			if min(here, far) > cornerContrast*max(one, two) || min(one, two) > cornerContrast*max(here, far) {
				return true
			}
		}
	}
	return false
}
