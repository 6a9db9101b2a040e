package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Filled is a hole that lost peers left in the answer. It was filled with the solution of the problem on the hole,
// with the surrounding values as boundary data.
type Filled struct {
	Box      [][2]int        `json:"box"`    // smallest box that contains it, half open, x first
	Points   int             `json:"points"` // of the hole
	Method   string          `json:"method"`
	Iterates uint64          `json:"iterates"`          // cycles or sweeps of the method
	Residual nullable.Number `json:"relative_residual"` // of the problem on the hole
	Seconds  float64         `json:"seconds"`
}

// filled returns the filled holes of a problem with that dimension.
func filled(o *launch.Outcome, dimension int) (out []Filled) {
	for _, h := range o.Filled {
		f := Filled{Points: h.Points, Method: h.Method, Iterates: h.Cycles, Residual: nullable.Number(h.Residual),
			Seconds: h.Seconds}
		for a := range dimension {
			f.Box = append(f.Box, [2]int{h.Box.Lo[a], h.Box.Hi[a]})
		}
		out = append(out, f)
	}
	return out
}

// holes writes the state of the blocks of lost peers.
func (s *Solution) holes(w io.Writer) {
	if len(s.MissingBlocks) == 0 {
		return
	}
	if len(s.FilledBlocks) == 0 {
		fmt.Fprintf(w, "\tthe blocks of peers %v were lost: they hold starting values\n", s.MissingBlocks)
		return
	}
	fmt.Fprintf(w, "\tthe blocks of peers %v were lost, and filled from the surrounding values:\n", s.MissingBlocks)
	for _, f := range s.FilledBlocks {
		fmt.Fprintf(w, "\t%d points, by %d %s of %s to a relative residual of %s, in %.3f s\n",
			f.Points, f.Iterates, iterates(f.Method), f.Method, value(f.Residual), f.Seconds)
	}
}
