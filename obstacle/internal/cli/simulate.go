package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

func (a *app) simulateCommand() *cobra.Command {
	q := &request{
		catalog: a.catalog, Spec: rendezvous.Spec{PeerTimeout: defaultPeerTimeout, Protect: defaultProtect},
	}
	s := &simulation{}
	var machines int
	var p pageFlags
	c := &cobra.Command{
		Use:   "simulate PROBLEM",
		Short: "Solve a problem on a simulated cluster",
		Long: `simulate runs the peers of a solve, with their protocol, on the model of a cluster in
virtual time. The numerical results are real; the model determines the times of
machines and networks (docs/simulation.md). The same seed gives the same run.

Exit codes are those of solve. --max-time is virtual time.`,
		Example: "  obstacle simulate membrane --n 32 --model graphene-eth --machines 8 --scheme async",
		Args:    oneArgument("problem"),
		RunE: func(c *cobra.Command, args []string) error {
			s.size(q, c.Flags(), args[0])
			var err error
			if q.pages, err = a.openPages(&p); err != nil {
				return err
			}
			defer q.pages.close()
			return cmp.Or(a.simulate(c.Context(), q, s, args[0], machines), a.report(c.Context(), q.pages, q.PeerTimeout))
		},
	}
	f := c.Flags()
	q.numericFlags(f)
	f.Lookup("n").DefValue = "256"
	q.method.studies(f)
	s.flags(f)
	q.recoveryFlags(f)
	s.lossFlags(f)
	s.partsFlags(f, q)
	f.IntVar(&machines, "machines", 4, "number of machines, with one peer each (see --parts)")
	q.trace.add(f, "record what every peer does in virtual time, and write it to FILE.RANK")
	schemeFlag(f, &q.Scheme, q.catalog)
	p.add(f)
	return grouped(c)
}

func (a *app) simulate(ctx context.Context, q *request, s *simulation, ref string, machines int) error {
	if err := a.alone("simulate"); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := s.checkParts(q); err != nil {
		return err
	}
	if err := q.trace.check(); err != nil {
		return err
	}
	f, err := a.openModel(s.model, q.calibrationBlock(machines))
	if err != nil {
		return err
	}
	r, err := a.prepare(q, s, f, ref, q.Scheme, machines)
	if err != nil {
		return err
	}
	lost, err := s.losses(machines)
	if err != nil {
		return err
	}
	r.Model.Events = append(r.Model.Events, lost...)
	if err := q.trace.checkRanks(r.work.partition.Peers()); err != nil {
		return err
	}
	if q.trace.file != "" {
		o := q.trace.options()
		r.Trace = &o
	}
	a.coarser(r, func(side int) (*virtualRun, error) {
		return a.prepare(q, s.with(side), f, ref, q.Scheme, machines)
	})
	runs := []*virtualRun{r}
	var one *virtualRun
	switch {
	case r.sequential():
	case machines == 1:
		one = r
	default:
		if one, err = a.single(q, s, f, ref, fastest(r.machines())); err != nil {
			return err
		}
		if r.coarser != nil {
			a.coarser(one, func(side int) (*virtualRun, error) {
				return a.single(q, s.with(side), f, ref, fastest(r.machines()))
			})
		}
		runs = append(runs, one)
	}
	runs = withCoarser(runs)
	ctx, stop := stoppable(ctx)
	defer stop()
	if err := a.simulateAll(ctx, runs); err != nil {
		return err
	}
	if r.refused != nil { // what it is compared with was possible
		return badInput(r.refused)
	}
	traces := q.trace.writeVirtual(r.result)
	alone, about := reference(one, r)
	coarse, _ := reference(onCoarser(one), cmp.Or(r.coarser, r))
	r.against(alone, coarse)
	out := report.Simulation{Subject: r.subject(s, f), Simulated: r.figures,
		PerMachine: report.Machines(r.result, &r.Config)}
	out.Reference, out.Alone = about, nullable.Time(float64(alone.Seconds))
	if r.coarser != nil {
		out.Coarser = r.coarser.Scale
	}
	out.Simulation = report.Effort{
		Events: r.result.Events, Segments: r.figures.Segments, WallSeconds: r.wall.Seconds(),
		SegmentsPerSecond: float64(r.figures.Segments) / r.wall.Seconds(),
	}
	err = a.print(&out, out.Text)
	traces.after = patience(q.PeerTimeout, len(r.result.Ranks)*q.trace.mib<<20) // the answer does not name them
	return cmp.Or(err, a.finish(ctx, traces), r.verdict())
}
