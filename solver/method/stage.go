package method

import "math"

// Kind is what a stage does.
type Kind int

// The kinds of stages. "Values" are the unknowns of a level: the solution itself on the
// level where a cycle begins, a correction of the next finer level's values below it;
// "data" are its source and obstacles. Between two stages the ghosts that the next one
// reads have to be brought up to date where a level is spread over several blocks.
const (
	// Relax does Sweeps red-black sweeps on Level: colour 0, then colour 1. Each colour
	// reads the values of the other one, of neighbours along the axes (faces of ghosts),
	// and its own; it writes the values of its own.
	Relax Kind = iota
	// Restrict makes the problem of the correction on Level+1: the source from the
	// residual of Level, which reads values (faces) at the fine points that a coarse point
	// touches (own points, faces, edges and corners of the residual, so two layers of
	// values where the residual is not exchanged); the obstacles from the fine obstacles
	// and values (own points of nested grids); the Walls of Level+1 from the contact of
	// Level, which the marked Residual tells (Level.Defect), and from its Walls, both at the
	// fine points between two coarse ones (faces: exchange the two arrays together). When
	// all of them are there, or a whole level was gathered, Level+1 needs Wall. The values of
	// Level+1 become 0, ghosts too.
	Restrict
	// Solve is as many sweeps on Level, the coarsest, as solve it.
	Solve
	// Prolong adds the correction of Level+1 to the values of Level where they are not in
	// contact, and projects. It reads values of Level+1: faces, edges and corners. Of level 0
	// what the values were is kept, to come back to.
	Prolong
	// Data makes the problem itself on Level+1, for the full multigrid start: obstacles and
	// source of Level, its values on the boundary of the whole region (faces, edges and
	// corners). Own points of nested grids.
	SampleProblem
	// Interpolate starts Level from the values of Level+1 (faces, edges and corners), whose
	// ghosts become 0 afterwards: from then on it holds corrections.
	Interpolate
	// Measure takes the residual of level 0: reads values (faces).
	Measure
	// Reference sets the values of Level to the start that knows nothing, 0 between the
	// obstacles, and takes its residual, for Choose: reads values (faces).
	ReferenceStart
	// Choose takes the residual of the problem itself on Level, after a cycle of the full
	// multigrid start there, and goes back to the values of Reference if it is larger.
	ChooseStart
)

// Stage is a step of a cycle that all blocks of a level can do at the same time.
type Stage struct {
	Kind   Kind
	Level  int // of transfers: the finer one
	Sweeps int // of Relax and Solve; of Restrict and Measure those that come first (Fused)
	Omega  float64
	// Corrected: Prolong is done first, in the same pass (Fused).
	Prolongs bool
}

// Work is what the stage costs, in sweeps over its level.
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

// joins tells whether a level that is not shared between blocks does both stages in one
// pass over memory: a relaxation and another one, or what reads the residual afterwards; a
// correction and the relaxation of what it has corrected.
func (s Stage) joins(next Stage) bool {
	if next.Level != s.Level || s.Kind == Prolong && (next.Kind != Relax || next.Sweeps < 1) {
		return false
	}
	if s.Kind != Relax {
		return s.Kind == Prolong
	}
	return next.Kind == Restrict || next.Kind == Measure || next.Kind == Relax && next.Omega == s.Omega
}

// Fused joins what can be joined, in place, of the stages of which alone says that this
// block has their levels alone.
func Fuse(stages []Stage, alone func(s Stage) bool) []Stage {
	out := stages[:0]
	for _, s := range stages {
		if last := len(out) - 1; last >= 0 {
			if before := out[last]; before.joins(s) && alone(before) && alone(s) {
				if before.Kind == Prolong {
					s.Prolongs = true
				} else {
					s.Sweeps, s.Omega, s.Prolongs = s.Sweeps+before.Sweeps, before.Omega, before.Prolongs
				}
				out[last] = s
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// Smoothing says how much is relaxed where.
type Smoothing struct {
	Before, After int     // sweeps on the way down and up
	Omega         float64 // of the relaxation
	// Twice: a cycle goes twice to a grid that has at most this part of the points of the
	// finer one. 0: V cycles.
	TwiceRatio float64
}

// Cycle is the stages of a cycle that begins on level top; from level 0 it keeps the
// relaxed values before the coarse correction and measures at the end.
func (h *Hierarchy) Cycle(s Smoothing, top int) []Stage { return h.cycle(nil, s, top, top) }

func (h *Hierarchy) cycle(out []Stage, s Smoothing, top, l int) []Stage {
	if l == h.Coarsest() {
		return append(out, h.solve(l))
	}
	out = append(out, Stage{Kind: Relax, Level: l, Sweeps: s.Before, Omega: s.Omega}, Stage{Kind: Restrict, Level: l})
	visits := 1
	if l+1 < h.Coarsest() && float64(points(h.Grids[l+1])) <= s.TwiceRatio*float64(points(h.Grids[l])) {
		visits = 2
	}
	for range visits {
		out = h.cycle(out, s, top, l+1)
	}
	out = append(out, Stage{Kind: Prolong, Level: l}, Stage{Kind: Relax, Level: l, Sweeps: s.After, Omega: s.Omega})
	if l == 0 {
		out = append(out, Stage{Kind: Measure})
	}
	return out
}

// Start is the stages of the full multigrid start: solve the coarsest grid, interpolate
// to the next finer one, do a cycle there, and so on. It ends with the values of level 0
// interpolated, the caller's cycles follow. Guarded: what a grid makes of the values that
// come from below is kept only if their residual is not larger than that of 0 between the
// obstacles; where coefficients vary, coarse grids may be misled, and a finer one multiplies
// what they answer.
func (h *Hierarchy) Start(s Smoothing, guarded bool) []Stage {
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
			out = h.cycle(out, s, l, l)
		}
		if check {
			out = append(out, Stage{Kind: ChooseStart, Level: l})
		}
	}
	return out
}

// Relaxation is the stages of what is done instead of a cycle that was not accepted.
func (h *Hierarchy) Relaxation(sweeps int) []Stage {
	return []Stage{{Kind: Relax, Sweeps: sweeps, Omega: 1}, {Kind: Measure}}
}

// solve is the sweeps that solve the coarsest grid: one for a single point, and so many
// with the best factor for a free membrane that the error is a hundredth.
func (h *Hierarchy) solve(l int) Stage {
	most := 1
	for a := range h.Dim {
		most = max(most, h.Grids[l][a])
	}
	if most == 1 {
		return Stage{Kind: Solve, Level: l, Sweeps: 1, Omega: 1}
	}
	omega := 2 / (1 + math.Sin(math.Pi/float64(most+1)))
	sweeps := math.Ceil(math.Log(0.01)/math.Log(omega-1)) + 2
	return Stage{Kind: Solve, Level: l, Sweeps: int(min(sweeps, maxCoarseSweeps)), Omega: omega}
}

// maxSolve bounds the sweeps on the coarsest grid.
const maxCoarseSweeps = 2000
