package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

type enclosureFlags struct {
	enabled bool
	sweeps  int
}

func (n *enclosureFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&n.enabled, "enclose", false,
		"bound the discrete solution and every probe from below and above, rounding errors included")
	f.IntVar(&n.sweeps, "enclose-sweeps", 24, "with --enclose: relaxations that tighten the bounds")
}

// check returns an error, before the run, if an enclosure is impossible.
func (n *enclosureFlags) check(p *problem.Problem) error {
	if n.enabled && p.Steps() > 0 {
		return usage("--enclose: the problem is nonstationary, and the errors of its steps add up; only " +
			"stationary problems can be enclosed")
	}
	if n.enabled && p.FixedPoint != nil {
		return usage("--enclose: only obstacle problems can be enclosed, and %s is an iteration of its own", p.Name)
	}
	return n.checkSweeps()
}

// checkSweeps is the part of check that needs no problem.
func (n *enclosureFlags) checkSweeps() error {
	if n.sweeps < 0 {
		return usage("--enclose-sweeps %d: want 0 or more", n.sweeps)
	}
	return nil
}

// unlessInterrupted returns the context of work on an answer, which the next signal ends.
func (a *app) unlessInterrupted(ctx context.Context, s *report.Solution) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if s.Reason != launch.Interrupted { // else the first signal has ended the run, and the second one ends ctx
		go func() {
			select {
			case <-a.interrupt: // nil: never
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// enclose adds the requested enclosure and its values at the probes to the answer, or the reason if there is none.
func (n *enclosureFlags) enclose(
	ctx context.Context, s *report.Solution, p *problem.Problem, u []float64, e *verify.Evaluation, places []problem.Point,
) error {
	if !n.enabled {
		return nil
	}
	why := e.Certificate.Why
	if s.Reason == launch.Interrupted {
		why = "the run was interrupted" // an enclosure takes longer than the user is willing to wait, and is wide
	}
	if why != "" {
		s.Enclosure = report.NoEnclosure(why)
		return nil
	}
	both, err := verify.Enclose(ctx, p, u, e, n.sweeps, parallel{})
	switch {
	case ctx.Err() != nil && err != nil:
		why = "interrupted before the bounds were computed"
		s.Enclosure = report.NoEnclosure(why)
		return &exitError{ExitStopped, errors.New("--enclose: " + why + "; the rest of the answer is complete")}
	case err != nil:
		return failed(err)
	}
	s.Enclosure = report.NewEnclosure(&both)
	for i, q := range places {
		s.Probes[i].Between = &[2]float64{probe(p, both.Lower, q).U, probe(p, both.Upper, q).U}
	}
	return nil
}

// force returns the contact force if an output holds it, else nil.
func force(w *work, o *launch.Outcome, out []string) ([]float64, error) {
	if !slices.ContainsFunc(out, output.HoldsForce) {
		return nil, nil
	}
	p, before, dt := w.problem.AtStep(o.Steps), []float64(nil), 0.0
	if w.problem.Evolution != nil {
		if o.Last.Step != o.Steps || o.Steps == 0 {
			return nil, nil
		}
		before, dt = o.Last.Before, w.problem.Evolution.Step()
	}
	f, err := verify.ContactForce(p, before, dt, o.U, parallel{})
	return f.Values, err
}
