package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type comparison struct {
	Problem   string  `json:"problem"`
	N         []int   `json:"n"`
	Tolerance float64 `json:"tolerance"`
	Method    string  `json:"method"`
	Order     string  `json:"order"`
	Threads   int     `json:"threads"`
	Rounds    int     `json:"rounds"`
	Reference string  `json:"reference"` // description of t(1)
	Rows      []row   `json:"rows"`
	Version   string  `json:"version"`
	// Verdict is null if no two rows with the same number of peers were solved.
	Verdict *report.Verdict `json:"verdict"`
	Best    *report.Best    `json:"best"`

	Figure string `json:"figure,omitempty"` // the first written one

	Outputs []report.Output `json:"outputs"`
}

func (a *app) compareCommand() *cobra.Command {
	q := &request{catalog: a.catalog}
	o := &modelFlags{}
	var schemes, methods []string
	var peers []int
	var rounds int
	var p pageFlags
	c := &cobra.Command{
		Use:   "compare PROBLEM",
		Short: "Compare schemes and methods on the same problem: table, efficiency, figure",
		Long: `compare solves the same problem to the same tolerance with every scheme on every
number of peers, in several rounds of interleaved runs, and prints the median time
and the spread. Efficiency is the time that the peers would take together by the time
that they take: t(1)/(k·t), where t(1) is the median time of one peer with the same
method and threads, without --slowdown, and k the speed of all peers as a multiple of
its speed. --methods compares methods, too, each with its own t(1).

The last line compares the best synchronous method with the best asynchronous one and
with one peer alone. Multigrid and Schwarz run for it once, even if they are not named.

A row that cannot be solved shows the reason, and the others continue. Exit codes:
0 all rows are solved; 1 a run failed; 3 a run was stopped before the tolerance;
2 bad usage, or the flags of a row contradict each other and all others are solved.

With --model the runs are simulated on the model of a cluster (docs/simulation.md),
with every method and scheme on every number of --machines. The output is then the
same for the same seed. With --stand-in above 1 the times on the full grid are
estimated from two coarse grids, and there is no winner where they leave it open.`,
		Example: `  obstacle compare membrane --n 24 --peers 2 --rounds 1
  obstacle compare membrane --n 24 --model graphene-eth --machines 4,8 --scheme sync,async --csv table.csv
  obstacle compare membrane --n 24 --peers 1,2 --rounds 3 --latex table.tex
  obstacle compare membrane --n 24 --model graphene-ib --machines 2,4 --methods richardson,schwarz,multigrid`,
		Args: oneArgument("problem"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if c.Flags().Changed("methods") && c.Flags().Changed("method") {
				return usage("--method and --methods: give one of them")
			}
			if q.ofIteration(args[0]) {
				if c.Flags().Changed("methods") {
					return usage("--methods: %s is an iteration of its own, which has no other method: leave it out", args[0])
				}
				methods = []string{problem.FixedPoint}
			}
			if len(methods) == 0 {
				methods = []string{q.method.Name}
			}
			if slices.Contains(methods, solver.Auto) {
				return usage("compare compares methods by their names: give --methods %s or others; "+
					"obstacle explain says which one solve would choose", problem.Richardson)
			}
			var err error
			if q.pages, err = a.openPages(&p); err != nil {
				return err
			}
			defer q.pages.close()
			if o.model != "" {
				o.size(q, c.Flags(), args[0])
				err := a.compareOn(c.Context(), q, o, args[0], selection{methods: methods, schemes: schemes})
				return cmp.Or(err, a.report(c.Context(), q.pages, q.PeerTimeout))
			}
			if !c.Flags().Changed("scheme") {
				if schemes = []string{"sync", "async"}; q.clusters > 1 || q.topology != "" {
					schemes = append(schemes, "hybrid")
				}
			}
			err = a.compare(c.Context(), q, args[0], selection{methods, schemes, peers}, rounds, &o.files)
			return cmp.Or(err, a.report(c.Context(), q.pages, q.PeerTimeout))
		},
	}
	f := c.Flags()
	q.flags(f)
	q.method.studies(f)
	f.StringSliceVar(&schemes, "scheme", nil,
		"schemes to compare: sync, async, delay:K, hybrid (default sync,async, and hybrid with clusters)")
	f.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "schemes" {
			name = "scheme"
		}
		return renamed(f, name)
	})
	f.StringSliceVar(&methods, "methods", nil, "methods to compare (default: that of --method)")
	f.IntSliceVar(&peers, "peers", []int{2}, "numbers of peers, P1,P2,…")
	f.IntVar(&rounds, "rounds", 3, "number of rounds, each of which runs every row once")
	o.flags(f)
	p.add(f)
	return grouped(c)
}

type selection struct {
	methods, schemes []string
	peers            []int
}

func (a *app) compare(
	ctx context.Context, q *request, ref string, all selection, rounds int, files *comparisonFiles,
) error {
	if err := a.alone("compare"); err != nil {
		return err
	}
	if err := files.check(".tex"); err != nil {
		return err
	}
	switch {
	case rounds < 1 || rounds > 1000:
		return usage("--rounds %d: want 1 to 1000", rounds)
	case len(all.schemes) == 0 || len(all.peers) == 0:
		return usage("nothing to compare: give --scheme and --peers")
	}
	if err := q.checkShared(all.methods, all.schemes); err != nil {
		return err
	}
	q.threads = cmp.Or(q.threads, 1)
	c := comparison{
		Tolerance: q.Tolerance, Method: strings.Join(all.methods, ","), Order: q.order, Threads: q.threads, Rounds: rounds,
		Version: build.Version(),
	}
	var cases []measurement
	for _, m := range all.methods {
		of := *q
		of.method.Name = m
		more, err := of.cases(ref, all.schemes, all.peers)
		if err != nil {
			return err
		}
		for i := range more {
			more[i].row.reference = len(cases)
		}
		cases = append(cases, more...)
	}
	first := slices.IndexFunc(cases, func(t measurement) bool { return t.work != nil })
	if first < 0 {
		return cases[0].row.err
	}
	p := cases[first].work.problem
	c.Problem, c.N = cases[first].work.spec.Name(), slices.Clone(p.N[:p.Dimension])
	c.Reference = fmt.Sprintf("sync on 1 peer, projected %s in %s order, threads %d",
		strings.Join(all.methods, " or "), q.order, q.threads)
	if p.FixedPoint != nil {
		c.Reference = fmt.Sprintf("sync on 1 peer, threads %d", q.threads)
	}
	ctx, stop := a.interrupts(ctx)
	defer stop()
	for round := range rounds {
		for i := range cases {
			t := &cases[i]
			if t.row.err == nil {
				t.request.label = fmt.Sprintf("%s, %s, %s, round %d of %d", t.row.Scheme, t.row.Method,
					counted(t.row.Peers, "peer"), round+1, rounds)
				t.row.err = a.once(ctx, t)
			}
			if ctx.Err() != nil {
				return t.row.err // ended at once: write nothing
			}
			a.log.Info().Int("round", round).Str("scheme", t.row.Scheme).Int("peers", t.row.Peers).
				Bool("solved", t.row.err == nil).Msg("done")
		}
	}
	ran := false
	for i := range cases {
		c.Rows = append(c.Rows, cases[i].row)
		ran = ran || exitCode(cases[i].row.err) != ExitUsage
	}
	if !ran { // every row was refused
		return c.Rows[0].err
	}
	c.summarize()
	c.Verdict = report.Judge(contenders(c.Rows, len(all.methods) > 1), rounds)
	c.Best = a.runBest(ctx, q, ref, all, c.Rows)
	written := files.write(map[string]func(io.Writer) error{".tex": c.latex}, c.title(), series(c.Rows, len(all.methods) > 1))
	written.wait(q.PeerTimeout, 0)
	c.Outputs = written.prompt(ctx)
	if i := slices.IndexFunc(c.Outputs, func(o report.Output) bool {
		return o.Error == "" && files.extension(o.File) != ".tex"
	}); i >= 0 {
		c.Figure = c.Outputs[i].File
	}
	return cmp.Or(a.print(c, func(w io.Writer) { c.text(w, a.painter(a.out)) }), a.finish(ctx, written), c.verdict())
}

type measurement struct {
	request request
	work    *work
	row     row
}

// cases returns the measurements, the reference first.
func (q *request) cases(ref string, schemes []string, peers []int) ([]measurement, error) {
	one := *q
	one.Scheme, one.peers = "sync", 1
	one.slowdown = nil
	one.clusters, one.topology = 0, ""
	one.partition, one.weights, one.Parts = "auto", nil, 1
	one.method.Flexible = false
	out := []measurement{one.measure(ref)}
	if _, err := slowdowns(q.slowdown, slices.Max(peers)); err != nil {
		return nil, badInput(err)
	}
	if _, err := q.method.config(iterate.Synchronous(), q.catalog); err != nil {
		return nil, err
	}
	for _, s := range schemes {
		if _, err := q.catalog.Scheme(s, nil); err != nil {
			return nil, badInput(err)
		}
		if s == "hybrid" && q.clusters == 0 && q.topology == "" {
			return nil, errNoClusters
		}
		for _, p := range peers {
			if p < 1 {
				return nil, usage("--peers %d: want 1 or more", p)
			}
			r := *q
			r.Scheme, r.peers = s, p
			r.slowdown = slowdownsAmong(q.slowdown, p)
			if s == "sync" && p == 1 && len(r.slowdown) == 0 {
				continue // the reference
			}
			out = append(out, r.measure(ref))
		}
	}
	return out, nil
}

// measure returns the measurement of a request, with the reason if it cannot be solved.
func (q *request) measure(ref string) measurement {
	t := measurement{request: *q, row: row{Method: q.method.Name, Scheme: q.Scheme, Peers: q.peers, Converged: true}}
	if t.work, t.row.err = q.resolve(ref); t.row.err == nil {
		t.row.Scheme, t.row.Peers = t.work.scheme.Name(), t.work.peers
	}
	t.row.Together = nullable.Number(speedTogether(q.slowdown, t.row.Peers))
	return t
}

func slowdownsAmong(flags []string, p int) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(s string) bool {
		rank, _, _ := strings.Cut(s, ":")
		r, err := strconv.Atoi(rank)
		return err == nil && r >= p
	})
}

// speedTogether returns the speed of peers of which some are slowed down, as a multiple of that of one that is not.
func speedTogether(flags []string, peers int) float64 {
	slow, _ := slowdowns(flags, peers) // invalid ones are refused elsewhere
	sum := 0.0
	for r := range peers {
		sum += 1 / cmp.Or(slow[r], 1)
	}
	return sum
}

// once runs a measurement once and adds its times.
func (a *app) once(ctx context.Context, t *measurement) error {
	r := &t.row
	r.residuals = figure.Record(nil, 0, 1) // the relative residual starts at 1
	t.request.watch = func(p launch.Progress) {
		r.residuals = figure.Record(r.residuals, p.Elapsed.Seconds(), p.Residual)
	}
	s, _, err := a.solution(ctx, &t.request, t.work)
	if err != nil {
		return err
	}
	r.Idle = idleShare(s)
	r.residuals = figure.Record(r.residuals, float64(s.Seconds), float64(s.RelativeResidual))
	if err := verdict(s); err != nil {
		r.Residual = max(r.Residual, s.RelativeResidual)
		return &exitError{exitCode(err), errors.New(cmp.Or(err.Error(), "stopped before the tolerance: "+s.Reason))}
	}
	r.seconds, r.sweeps = append(r.seconds, float64(s.Seconds)), append(r.sweeps, s.SequentialEquivalentSweeps)
	r.Residual = max(r.Residual, s.RelativeResidual)
	r.Messages, r.Bytes = &s.Messages, &s.Bytes
	r.Planes = &s.PlanesMoved
	r.Converged = r.Converged && s.Converged
	return nil
}
