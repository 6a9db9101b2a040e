package report

import (
	"fmt"
	"io"
)

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
