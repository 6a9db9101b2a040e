package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
)

// losses describes the losses from which the run went on.
func (s *Solution) losses(w io.Writer) {
	for _, l := range s.Losses {
		fmt.Fprintf(w, "lost\t%s\n\tafter %.2f s; %s took its place, and all peers relaxed again %s later\n",
			l.Why, l.Detected, l.By, seconds(l))
		if l.Method != "" {
			fmt.Fprintf(w, "\tits block was solved again from its neighbours' values, by %d %s of %s\n",
				l.Iterates, iterates(l.Method), l.Method)
		}
		if l.Unbound != "" {
			fmt.Fprintf(w, "\tthis may have raised the error: %s\n", l.Unbound)
		}
	}
}

// seconds returns the time that a recovery took.
func seconds(l *launch.Loss) string {
	if t := float64(l.Recovered) - l.Detected; t >= 0 {
		return fmt.Sprintf("%.3f s", t)
	}
	return "not before the next loss"
}

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
