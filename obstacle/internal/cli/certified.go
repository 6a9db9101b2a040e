package cli

import (
	"runtime"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/spf13/pflag"
)

// enclosing are the flags of two-sided enclosures.
type enclosing struct {
	wanted bool
	sweeps int
}

func (n *enclosing) add(f *pflag.FlagSet) {
	f.BoolVar(&n.wanted, "enclose", false, "enclose the discrete solution from below and from above, rounding included, and every probe")
	f.IntVar(&n.sweeps, "enclose-sweeps", 24, "with --enclose: relaxations that draw both sides together")
}

// check refuses before the run what could not be done after it.
func (n *enclosing) check(p *problem.Problem) error {
	switch {
	case n.sweeps < 0:
		return usage("--enclose-sweeps %d: want 0 or more", n.sweeps)
	case n.wanted && p.Steps() > 0:
		return usage("--enclose: the problem changes in time, and the errors of its steps add up; only stationary ones are enclosed")
	}
	return nil
}

// enclose adds an enclosure to the answer where one is wanted, and its values at the
// probes; where there can be none, the answer says why.
func (n *enclosing) enclose(s *report.Solution, p *problem.Problem, u []float64, e *verify.Evaluation, places []problem.Point) error {
	if !n.wanted {
		return nil
	}
	if why := e.Certificate.Why; why != "" {
		s.Enclosure = report.NoEnclosure(why)
		return nil
	}
	both, err := verify.Enclose(p, u, e, n.sweeps, parallel(runtime.GOMAXPROCS(0)))
	if err != nil {
		return failed(err)
	}
	s.Enclosure = report.NewEnclosure(&both)
	for i, q := range places {
		s.Probes[i].Between = &[2]float64{probe(p, both.Lower, q).U, probe(p, both.Upper, q).U}
	}
	return nil
}

// force is the array of the contact force, for the outputs that hold it.
func force(w *work, o *launch.Outcome, out []string) ([]float64, error) {
	wanted := false
	for _, name := range out {
		wanted = wanted || output.HoldsForce(name)
	}
	if !wanted {
		return nil, nil
	}
	p, before, dt := w.problem.AtStep(o.Steps), []float64(nil), 0.0
	if w.problem.Evolution != nil {
		if o.Last.Step != o.Steps || o.Steps == 0 {
			return nil, nil
		}
		before, dt = o.Last.Before, w.problem.Evolution.Step()
	}
	f, err := verify.ContactForce(p, before, dt, o.U, parallel(runtime.GOMAXPROCS(0)))
	return f.Values, err
}
