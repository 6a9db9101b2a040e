package method

import (
	"math"
	"slices"
)

// Kind is the operation of a stage.
type Kind int

// The kinds of stages. "Values" are the unknowns of a level: the solution on the level where a cycle begins, a
// correction of the next finer level's values on the levels below. "Data" are the source and the obstacles. If a
// level is distributed over several blocks, the ghosts that a stage reads must be exchanged before it.
const (
	// Relax executes Sweeps red-black sweeps on Level: colour 0, then colour 1. Each colour reads values of
	// both colours, including ghosts on faces, and writes values of its own.
	Relax Kind = iota
	// Restrict computes the correction problem on Level+1.
	//
	// Its source is the restricted residual of Level. Restriction reads the residual at own points and at
	// ghosts on faces, edges and corners; the residual reads values at ghosts on faces. If the residual is
	// not exchanged, two ghost layers of values are needed.
	//
	// Its obstacles follow from the obstacles and values of Level (own points if the grids are nested). Its
	// Truncation follows from the contact points of Level, which are marked in Residual (Level.Defect), and
	// from the Truncation of Level, both at the fine points between two coarse points: exchange the faces of
	// both arrays together. When the Truncation of Level+1 is complete, or a whole level was gathered,
	// Level+1 needs UpdateTruncated. The values of Level+1 become 0, including ghosts.
	Restrict
	// Solve solves Level, the coarsest, which lies in one block (Level.Solve).
	Solve
	// Prolong adds the correction of Level+1 to the values of Level that are not in contact, and projects. It reads
	// values of Level+1 including ghosts on faces, edges and corners. On level 0 the old values are saved.
	Prolong
	// SampleProblem computes the problem itself on Level+1 for the full multigrid start: obstacles and source
	// of Level (own points if the grids are nested), and its values on the boundary of the whole region
	// (faces, edges and corners).
	SampleProblem
	// Interpolate initialises the values of Level from those of Level+1 (faces, edges and corners). It then
	// sets the ghosts of Level+1 to 0, because later stages store corrections there.
	Interpolate
	// Measure computes the residual of level 0. It reads values (faces).
	Measure
	// ReferenceStart sets the values of Level to 0 projected between the obstacles and computes the residual
	// of these values for ChooseStart. It reads values (faces).
	ReferenceStart
	// ChooseStart computes the residual of the problem itself on Level, after a cycle of the full multigrid
	// start. If it is larger than that of ReferenceStart, the values of ReferenceStart are restored.
	ChooseStart
)

// Stage is a step of a cycle that all blocks of a level can execute at the same time.
type Stage struct {
	Kind   Kind
	Level  int // the finer level of a transfer
	Sweeps int // sweeps of Relax, and of Solve by sweeps; sweeps fused before Restrict and Measure (Fuse)
	Omega  float64
	// Prolongs reports that Prolong is executed first in the same pass (Fuse).
	Prolongs bool
}

// Work returns the cost of the stage in sweeps over its level.
func (s Stage) Work() float64 {
	work := 0.0
	switch s.Kind {
	case Relax, Solve:
		work = float64(s.Sweeps)
	case Restrict, Measure, ReferenceStart, ChooseStart:
		work = float64(1 + s.Sweeps)
	case Prolong, Interpolate:
		work = 0.5
	}
	if s.Prolongs {
		work += 0.5
	}
	return work
}

// joins reports whether a level that is not distributed can execute both stages in one pass over
// memory: a relaxation with another relaxation or with a stage that reads the residual, or a
// correction with the relaxation of the corrected values.
func (s Stage) joins(next Stage) bool {
	if next.Level != s.Level || s.Kind == Prolong && (next.Kind != Relax || next.Sweeps < 1) {
		return false
	}
	if s.Kind != Relax {
		return s.Kind == Prolong
	}
	return next.Kind == Restrict || next.Kind == Measure || next.Kind == Relax && next.Omega == s.Omega
}

// Fuse combines consecutive stages in place where that is possible. alone reports whether the level of a
// stage lies in this block alone.
func Fuse(stages []Stage, alone func(s Stage) bool) []Stage {
	out := stages[:0]
	for _, s := range stages {
		if last := len(out) - 1; last >= 0 {
			if before := out[last]; before.joins(s) && alone(before) && alone(s) {
				if before.Kind == Prolong {
					s.Prolongs = true
				} else {
					s.Sweeps += before.Sweeps
					s.Omega = before.Omega
					s.Prolongs = before.Prolongs
				}
				out[last] = s
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// smoothingOmega is the factor of the sweeps before and after a coarse correction, one each. It is optimal for
// smoothing in three dimensions (Yavneh, SIAM J. Sci. Comput. 17, 1996) and the fastest on the reference problems.
const smoothingOmega = 1.15

// twiceRatio returns the largest ratio of coarse to fine points for which a cycle ("v", "w" or "") visits the coarse
// grid twice. On larger coarse grids a second visit costs more than it gains. "" selects W cycles in three dimensions
// and V cycles below.
func twiceRatio(cycle string) float64 {
	switch cycle {
	case "v":
		return 0
	case "w":
		return 0.4
	}
	return 0.2
}

// Cycle returns the stages of a cycle ("v", "w" or "", see Options). It saves the relaxed values before the coarse
// correction and measures the residual at the end.
func (h *Hierarchy) Cycle(cycle string) []Stage { return h.cycle(nil, twiceRatio(cycle), 0) }

func (h *Hierarchy) cycle(out []Stage, twice float64, l int) []Stage {
	if l == h.Coarsest() {
		return append(out, h.solve(l))
	}
	smooth := Stage{Kind: Relax, Level: l, Sweeps: 1, Omega: smoothingOmega}
	out = append(out, smooth, Stage{Kind: Restrict, Level: l})
	out = h.cycle(out, twice, l+1)
	if l+1 < h.Coarsest() && float64(points(h.Grids[l+1])) <= twice*float64(points(h.Grids[l])) {
		out = h.cycle(out, twice, l+1)
	}
	out = append(out, Stage{Kind: Prolong, Level: l}, smooth)
	if l == 0 {
		out = append(out, Stage{Kind: Measure})
	}
	return out
}

// Start returns the stages of the full multigrid start: solve the coarsest grid, interpolate to the next finer grid,
// execute a cycle there, and so on. The last stage interpolates to level 0; the caller's cycles follow. If guarded,
// the values of a grid are accepted only if their residual is not larger than that of 0 projected between the
// obstacles. With variable coefficients a coarse grid may be wrong, and the finer grids would amplify its error.
func (h *Hierarchy) Start(cycle string, guarded bool) []Stage {
	var out []Stage
	last := h.Coarsest()
	for l := range last {
		out = append(out, Stage{Kind: SampleProblem, Level: l})
	}
	out = append(out, h.solve(last))
	for l := last - 1; l >= 0; l-- {
		check := guarded && l > 0
		if check {
			out = append(out, Stage{Kind: ReferenceStart, Level: l})
		}
		out = append(out, Stage{Kind: Interpolate, Level: l})
		if l > 0 {
			out = h.cycle(out, twiceRatio(cycle), l)
		}
		if check {
			out = append(out, Stage{Kind: ChooseStart, Level: l})
		}
	}
	return out
}

// solve returns the stage that solves the coarsest grid: one sweep for a single point, otherwise
// enough sweeps, with the optimal factor of a free membrane, to reduce the error to a hundredth.
func (h *Hierarchy) solve(l int) Stage {
	most := slices.Max(h.Grids[l][:])
	if most == 1 {
		return Stage{Kind: Solve, Level: l, Sweeps: 1, Omega: 1}
	}
	omega := MembraneOmega(most)
	sweeps := math.Ceil(math.Log(0.01)/math.Log(omega-1)) + 2
	return Stage{Kind: Solve, Level: l, Sweeps: int(min(sweeps, maxCoarseSweeps)), Omega: omega}
}

// MembraneOmega returns the optimal SOR factor for a free membrane of n points per axis.
func MembraneOmega(n int) float64 { return 2 / (1 + math.Sin(math.Pi/float64(n+1))) }

// maxCoarseSweeps bounds the sweeps on the coarsest grid.
const maxCoarseSweeps = 2000
