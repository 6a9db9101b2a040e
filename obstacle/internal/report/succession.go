package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
)

// SimulatedLeader is a peer whose process has led a simulated run after the loss of its launcher. Times are virtual
// seconds since the first relaxation.
type SimulatedLeader struct {
	Rank    int             `json:"rank"`
	Elected float64         `json:"elected"` // most keepers have agreed
	Led     nullable.Number `json:"led"`     // its peers had returned; null: the run ended before
	Missing []int           `json:"missing"` // ranks that had not, and were replaced
}

// SimulatedCutOff is the end of a process that the run has gone on without, or that could not go on.
type SimulatedCutOff struct {
	Process string  `json:"process"`
	Seconds float64 `json:"seconds"` // when it ended, virtual, since the first relaxation
}

// succession sets who has led the run, and which processes were cut off from it.
func (s *Simulated) succession(r *simulate.Result) {
	s.Leaders, s.CutOff = []SimulatedLeader{}, []SimulatedCutOff{}
	for _, l := range r.Leaders {
		s.Leaders = append(s.Leaders, SimulatedLeader{
			l.Rank, l.Elected.Seconds(), nullable.Time(l.Led.Seconds()), append([]int{}, l.Missing...),
		})
	}
	for _, c := range r.CutOff {
		name := fmt.Sprintf("peer %d", c.Rank)
		if c.Rank == simulate.Launcher {
			name = "launcher"
		}
		s.CutOff = append(s.CutOff, SimulatedCutOff{name, c.At.Seconds()})
	}
}

// successionText writes a line for each of them.
func (s *Simulated) successionText(w io.Writer) {
	for _, l := range s.Leaders {
		fmt.Fprintf(w, "leader\tthe process of peer %d, elected after %.6g s; ", l.Rank, l.Elected)
		switch {
		case !l.Led.Known():
			fmt.Fprintln(w, "the run ended before the peers returned to it")
		case len(l.Missing) == 0:
			fmt.Fprintf(w, "all peers had returned %.3f s later\n", float64(l.Led)-l.Elected)
		default:
			fmt.Fprintf(w, "%.3f s later all peers had returned but %v\n", float64(l.Led)-l.Elected, l.Missing)
		}
	}
	for _, c := range s.CutOff {
		fmt.Fprintf(w, "cut off\t%s, which ended after %.4g s\n", spelling.Visible(c.Process), c.Seconds)
	}
}
