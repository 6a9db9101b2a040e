package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Filled is a hole that lost peers left in the answer, filled with the solution of the problem
// on it for the values around it.
type Filled struct {
	Box      [][2]int        `json:"box"`    // interior points of the smallest box that holds it, half open, x first
	Points   int             `json:"points"` // of the hole
	Method   string          `json:"method"`
	Iterates uint64          `json:"iterates"`          // cycles or sweeps of the method
	Residual nullable.Number `json:"relative_residual"` // of the problem on the hole
	Seconds  float64         `json:"seconds"`
}

// filled lists the holes of a problem of so many dimensions that were filled.
func filled(o *launch.Outcome, dimension int) (out []Filled) {
	for _, h := range o.Filled {
		f := Filled{Points: h.Points, Method: h.Method, Iterates: h.Cycles, Residual: nullable.Number(h.Residual), Seconds: h.Seconds}
		for a := range dimension {
			f.Box = append(f.Box, [2]int{h.Box.Lo[a], h.Box.Hi[a]})
		}
		out = append(out, f)
	}
	return out
}

// holes writes what became of the blocks of lost peers.
func (s *Solution) holes(w io.Writer) {
	if len(s.MissingBlocks) == 0 {
		return
	}
	if len(s.FilledBlocks) == 0 {
		fmt.Fprintf(w, "\tthe blocks of peers %v were lost: starting values stand there\n", s.MissingBlocks)
		return
	}
	fmt.Fprintf(w, "\tthe blocks of peers %v were lost, and filled from the values around them:\n", s.MissingBlocks)
	for _, f := range s.FilledBlocks {
		fmt.Fprintf(w, "\t%d points, by %d %s of %s to %s relative, in %.3f s\n", f.Points, f.Iterates, iterates(f.Method), f.Method, value(f.Residual), f.Seconds)
	}
}
