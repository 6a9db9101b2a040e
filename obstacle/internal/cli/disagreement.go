package cli

import (
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// disagrees reports whether the residual of an answer is above the tolerance that its peers say it meets. Near round-off the
// residual of the last iterate may be larger than that of the verdict.
func disagrees(s *report.Solution) bool {
	return s.Reason == launch.Converged && !s.Converged && !(float64(s.RelativeResidual) <= 2*s.Tolerance)
}

// disagreement names the part of an answer that contradicts what its peers say of it: the one with the largest residual. It
// is empty if the parts cannot be evaluated alone.
func disagreement(p *problem.Problem, o *launch.Outcome) string {
	if p.FixedPoint != nil {
		return "the blocks are not parts of one iteration, or a process has another one: check that Relax reads what Neighbours lists, and " +
			"that neither F nor the starting values depend on the cuts (docs/new-iteration.md, Its test)"
	}
	if p.Evolution != nil || len(o.Boxes) < 2 || len(o.Boxes) != len(o.Hosts) {
		return ""
	}
	worst, most := 0, -1.0
	around := func(at [3]int) float64 { return p.ValueAt(o.U, at) }
	for rank, b := range o.Boxes {
		e, err := verify.Measure(p.Inner(b, around, nil), blocks.Extract(o.U, p.N, b), parallel{})
		if err != nil {
			return ""
		}
		if !(e.ResidualInf <= most) { // NaN is the worst
			worst, most = rank, e.ResidualInf
		}
	}
	h := o.Hosts[worst]
	return fmt.Sprintf("the residual is largest in the part of peer %d (pid %d on %s), %.3g: that process or a neighbour has sent wrong "+
		"values or reported a wrong residual; if all processes are yours, this is a bug of the program", worst, h.Pid, h.Host, most)
}
