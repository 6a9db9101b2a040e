// Package placement decides which process runs which part of a run, from the speeds that are measured. Its decisions are
// functions of their arguments, so that real and simulated runs make the same ones.
package placement

import (
	"cmp"
	"math"
	"slices"
)

// Part is a part of the grid.
type Part struct {
	Points  int // that a sweep relaxes
	Process int // index of the process that runs it
}

// Process is a process that runs parts, or could.
type Process struct {
	Speed   float64 // points that it relaxes in a second; 0: unknown, as those of a process that has relaxed nothing
	Leaving bool    // it gives all its parts to others
}

// Move moves a part from one process to another.
type Move struct{ Part, From, To int }

// Longest returns the longest time, in seconds, that a process takes for a sweep of its parts, one after the other.
// Unknown speeds count as the median of those that are known. It is +Inf if a process that leaves has parts.
func Longest(parts []Part, processes []Process) float64 {
	return slices.Max(append(times(parts, processes, speeds(processes)), 0))
}

// Even returns moves of single parts that shorten the longest time of a process, as far as such moves can: each takes a
// part from the process with the longest time to the one that then has it done first. They are few rather than best: a
// part whose move saves less than a twentieth of the longest time stays. Every part of a leaving process moves, if there
// is another process. The order of processes decides between equal ones.
func Even(parts []Part, processes []Process) []Move {
	now, speed := slices.Clone(parts), speeds(processes)
	for range len(parts) * len(processes) {
		part, to := shorten(now, processes, speed)
		if part < 0 {
			break
		}
		now[part].Process = to
	}
	var moves []Move
	for i, p := range now {
		if from := parts[i].Process; p.Process != from {
			moves = append(moves, Move{i, from, p.Process})
		}
	}
	return moves
}

// worthwhile is the part of the longest time that a move has to save.
const worthwhile = 0.05

// shorten returns the move that the longest process gains most from, −1 if none is worthwhile.
func shorten(parts []Part, processes []Process, speed []float64) (part, to int) {
	took := times(parts, processes, speed)
	longest := 0
	for i, t := range took {
		if t > took[longest] {
			longest = i
		}
	}
	part = -1
	limit := took[longest] * (1 - worthwhile)
	for i, p := range parts {
		if p.Process != longest {
			continue
		}
		for q := range processes {
			if q == longest || processes[q].Leaving {
				continue
			}
			// The largest part whose move helps, to the process that is done with it first.
			then := took[q] + float64(p.Points)/speed[q]
			if then < limit && (part < 0 || p.Points > parts[part].Points ||
				p.Points == parts[part].Points && then < took[to]+float64(p.Points)/speed[to]) {
				part, to = i, q
			}
		}
	}
	return part, to
}

// times returns the time that each process takes for a sweep of its parts.
func times(parts []Part, processes []Process, speed []float64) []float64 {
	out := make([]float64, len(processes))
	for _, p := range parts {
		if processes[p.Process].Leaving {
			out[p.Process] = math.Inf(1)
		}
		out[p.Process] += float64(p.Points) / speed[p.Process]
	}
	return out
}

// speeds returns the speeds of processes, with the median of those that are known in place of the others.
func speeds(processes []Process) []float64 {
	var known []float64
	for _, p := range processes {
		if p.Speed > 0 {
			known = append(known, p.Speed)
		}
	}
	slices.Sort(known)
	usual := 1.0
	if n := len(known); n > 0 {
		usual = (known[(n-1)/2] + known[n/2]) / 2
	}
	out := make([]float64, len(processes))
	for i, p := range processes {
		out[i] = cmp.Or(max(p.Speed, 0), usual)
	}
	return out
}
