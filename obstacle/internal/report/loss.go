package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
)

// losses describes the losses from which a run went on.
func losses(w io.Writer, all []*launch.Loss) {
	for _, l := range all {
		fmt.Fprintf(w, "lost\t%s\n\tafter %.4g s; %s took its place, and %s\n",
			spelling.Visible(l.Why), l.Detected, spelling.Visible(l.By), recovered(l))
		if l.Method != "" {
			fmt.Fprintf(w, "\tits block was solved again from its neighbours' values, by %d %s of %s\n",
				l.Iterates, iterates(l.Method), l.Method)
		}
		switch from := float64(l.From); {
		case from > 0:
			fmt.Fprintf(w, "\tall peers went back to %.0f, the newest iterate that each had a copy of\n", from)
		case from == 0:
			fmt.Fprintf(w, "\tthe run began again: there was no iterate of which each peer had a copy\n")
		}
		switch from := float64(l.FromStep); {
		case from > 0:
			fmt.Fprintf(w, "\tall peers went on after time step %.0f\n", from)
		case from == 0:
			fmt.Fprintf(w, "\tall peers began again with the first time step\n")
		}
		if l.Refused > 0 {
			fmt.Fprintf(w, "\t%d of these values were outside the obstacles: the nearest within them were used\n", l.Refused)
		}
		if l.Unbound != "" {
			fmt.Fprintf(w, "\tthis may have raised the error: %s\n", strings.TrimPrefix(l.Unbound, "repair: "))
		}
	}
}

// shownMoves bounds the lines for moved parts.
const shownMoves = 8

// moves describes the parts that went to other processes.
func moves(w io.Writer, all []launch.Moved) {
	for i, m := range all {
		if i == shownMoves {
			fmt.Fprintf(w, "	and %d more\n", len(all)-i)
			return
		}
		title := "moved"
		if i > 0 {
			title = ""
		}
		fmt.Fprintf(w, "%s\tpart %d from %s to %s after %.4g s, in %.3f s\n", title, m.Rank, spelling.Visible(m.From),
			spelling.Visible(m.To), m.At, m.Seconds)
	}
}

// allReplaced reports whether no peer has taken part from the beginning of the run to its end.
func allReplaced(o *launch.Outcome) bool {
	lost := map[int]bool{}
	for _, l := range o.Losses {
		lost[l.Rank] = true
	}
	for _, m := range o.Moves {
		lost[m.Rank] = true
	}
	return len(lost) > 0 && len(lost) == len(o.Peers)
}

// recovered describes the end of a recovery.
func recovered(l *launch.Loss) string {
	if t := float64(l.Recovered) - l.Detected; t >= 0 {
		return fmt.Sprintf("all peers relaxed again %.3f s later", t)
	}
	return "the run ended, or another peer was lost, before all peers relaxed again"
}

// simulatedLoss returns the description of a loss of a simulated run.
func simulatedLoss(l *simulate.Loss, run *simulate.Config) *launch.Loss {
	class := run.Model.Hosts[l.Host].Name
	out := &launch.Loss{
		Rank: l.Rank, Detected: l.Noticed.Seconds(), Recovered: nullable.Time(l.Resumed.Seconds()), Method: l.Method,
		Iterates: uint64(l.Iterates), Residual: nullable.Number(l.Residual), Repair: l.Repair.Seconds(), From: nullable.NaN(),
		FromStep: nullable.NaN(),
		By:       fmt.Sprintf("new peer %d on a machine (%s)", l.Rank, class),
		Why:      fmt.Sprintf("peer %d (%s) was killed", l.Rank, class),
	}
	switch {
	case l.Left:
		out.Why = fmt.Sprintf("peer %d (%s) was lost with the leader of the run", l.Rank, class)
	case !l.Killed:
		out.Why = fmt.Sprintf("peer %d (%s) has been silent for more than %v (--suspect)", l.Rank, class, run.Recover.Suspect)
	}
	if run.Recover.Exact && run.Solver.Problem.Steps() == 0 && l.Resumed > 0 {
		out.From = nullable.Number(l.From)
	}
	if l.Repair == 0 {
		out.Residual = nullable.NaN()
	}
	if l.Spare {
		out.By = fmt.Sprintf("spare peer %d on a machine (%s)", l.Rank, class)
	}
	if l.Unbound != nil {
		out.Unbound = l.Unbound.Error()
	}
	return out
}
