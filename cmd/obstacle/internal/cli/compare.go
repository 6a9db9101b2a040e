package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/finite"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/report"
)

// comparison is the JSON of compare.
type comparison struct {
	Problem   string  `json:"problem"`
	N         []int   `json:"n"`
	Tolerance float64 `json:"tolerance"`
	Method    string  `json:"method"`
	Order     string  `json:"order"`
	Threads   int     `json:"threads"`
	Rounds    int     `json:"rounds"`
	Reference string  `json:"reference"` // what t(1) is
	Rows      []row   `json:"rows"`
	Version   string  `json:"version"`
	Figure    string  `json:"figure,omitempty"` // the first that was written

	Outputs []report.Output `json:"outputs"`
}

// row is one scheme on a number of peers: medians over the rounds.
type row struct {
	Method     string        `json:"method"`
	Scheme     string        `json:"scheme"`
	Peers      int           `json:"peers"`
	Seconds    float64       `json:"seconds"`
	Fastest    float64       `json:"seconds_fastest"`
	Slowest    float64       `json:"seconds_slowest"`
	Efficiency finite.Number `json:"efficiency"`
	Equivalent float64       `json:"sequential_equivalent_sweeps"`
	Residual   finite.Number `json:"relative_residual"` // the largest of the rounds
	Messages   uint64        `json:"messages"`
	Planes     int           `json:"planes_moved"`
	Bytes      uint64        `json:"bytes"`
	Converged  bool          `json:"converged"` // in every round

	seconds []float64
	sweeps  []float64
	one     int // index of the reference, which has the same method
}

func (a *app) compareCommand() *cobra.Command {
	q := &request{catalog: a.catalog}
	o := &onModel{}
	var schemes, methods, out []string
	var peers []int
	var rounds int
	c := &cobra.Command{
		Use:   "compare PROBLEM",
		Short: "Compare schemes on the same work: table, efficiency, figure",
		Long: `compare solves the same problem to the same tolerance with every scheme on every
number of peers, several rounds with the runs interleaved, and prints the median
time and the spread. Efficiency is t(1)/(P·t(P)); t(1) is the median time of one
peer with the same method and threads, none of it slowed by --slow. --methods
compares methods too, each against one peer of its own.

With --model the runs are simulated on the model of a cluster (docs/simulation.md),
with every method and scheme on every number of --machines: the same output for the
same seed.`,
		Example: `  obstacle compare membrane --n 24 --peers 2 --rounds 1
  obstacle compare membrane --n 24 --model graphene-eth --machines 4,8 --scheme sync,async --csv table.csv
  obstacle compare membrane --n 24 --model graphene-ib --machines 2,4 --methods richardson,schwarz,multigrid`,
		Args: oneArgument("problem"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.fits(c); err != nil {
				return err
			}
			if c.Flags().Changed("methods") && c.Flags().Changed("method") {
				return usage("--method and --methods: give one of them")
			}
			if len(methods) == 0 {
				methods = []string{q.method.name}
			}
			if o.model != "" {
				o.size(q, c.Flags())
				return a.compareOn(c.Context(), q, o, args[0], choices{methods: methods, schemes: schemes}, out)
			}
			if !c.Flags().Changed("scheme") {
				if schemes = []string{"sync", "async"}; q.clusters > 1 || q.topology != "" {
					schemes = append(schemes, "hybrid")
				}
			}
			return a.compare(c.Context(), q, args[0], choices{methods, schemes, peers}, rounds, out)
		},
	}
	f := c.Flags()
	q.flags(f)
	f.StringSliceVar(&schemes, "scheme", nil, "schemes to compare: sync, async, delay:K, hybrid (default sync,async, and hybrid when there are clusters); also --schemes")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "schemes" {
			name = "scheme"
		}
		return pflag.NormalizedName(name)
	})
	f.StringSliceVar(&methods, "methods", nil, "methods to compare: richardson, sor, multigrid, schwarz (default: --method)")
	f.IntSliceVar(&peers, "peers", []int{2}, "numbers of peers, P1,P2,…")
	f.IntVar(&rounds, "rounds", 3, "rounds; the runs of a round come one after the other")
	o.flags(f)
	f.StringArrayVar(&out, "out", nil, "write a figure of the efficiency: .png, .svg or .pdf; with --model also a table: .csv (repeatable)")
	return c
}

// choices are what compare compares.
type choices struct {
	methods, schemes []string
	peers            []int
}

func (a *app) compare(ctx context.Context, q *request, ref string, all choices, rounds int, out []string) error {
	for _, name := range out {
		if err := cmp.Or(badInput(figure.Check(name)), writable(name)); err != nil {
			return err
		}
	}
	switch {
	case rounds < 1 || rounds > 1000:
		return usage("--rounds %d: want 1 to 1000", rounds)
	case len(all.schemes) == 0 || len(all.peers) == 0:
		return usage("nothing to compare: give --scheme and --peers")
	}
	if q.threads == 0 {
		q.threads = 1
	}
	c := comparison{Tolerance: q.tol, Method: strings.Join(all.methods, ","), Order: q.order, Threads: q.threads, Rounds: rounds, Outputs: []report.Output{}, Version: build.Version()}
	var cases []trial
	for _, m := range all.methods {
		of := *q
		of.method.name = m
		more, err := of.cases(ref, all.schemes, all.peers)
		if err != nil {
			return err
		}
		for i := range more {
			more[i].row.one = len(cases)
		}
		cases = append(cases, more...)
	}
	first := cases[0].work.problem
	c.Problem, c.N = cases[0].work.spec.Name(), slices.Clone(first.N[:first.Dimension])
	c.Reference = fmt.Sprintf("sync on 1 peer, projected %s in %s order, threads %d", strings.Join(all.methods, " or "), q.order, q.threads)
	ctx, interrupt, stop := interrupts(ctx)
	defer stop()
	for round := range rounds {
		for i := range cases {
			if err := a.once(ctx, &cases[i], interrupt); err != nil {
				return err
			}
			a.log.Info().Int("round", round).Str("scheme", cases[i].row.Scheme).Int("peers", cases[i].row.Peers).Msg("done")
		}
	}
	for i := range cases {
		cases[i].row.sum(cases[cases[i].row.one].row.seconds)
		c.Rows = append(c.Rows, cases[i].row)
	}
	for _, name := range out {
		err := draw(name, fmt.Sprintf("%s, n = %v, tolerance %g", c.Problem, c.N, c.Tolerance), series(c.Rows, len(all.methods) > 1))
		if c.Outputs = append(c.Outputs, outcomeOf(name, err)); err == nil && c.Figure == "" {
			c.Figure = name
		}
	}
	return cmp.Or(a.print(c, c.text), unwritten(c.Outputs))
}

// trial is one row in the making.
type trial struct {
	request request
	work    *work
	row     row
}

// cases lists the runs of a round, the reference first.
func (q *request) cases(ref string, schemes []string, peers []int) ([]trial, error) {
	one := *q
	one.scheme, one.peers, one.slow, one.weights, one.partition = "sync", 1, nil, nil, "auto"
	one.clusters, one.topology = 0, ""
	requests := []request{one}
	if _, err := slowdowns(q.slow, slices.Max(peers)); err != nil {
		return nil, badInput(err)
	}
	for _, s := range schemes {
		for _, p := range peers {
			if p < 1 {
				return nil, usage("--peers %d: want 1 or more", p)
			}
			r := *q
			r.scheme, r.peers, r.slow = s, p, slowAmong(q.slow, p)
			if s == "sync" && p == 1 && len(r.slow) == 0 {
				continue // the reference
			}
			requests = append(requests, r)
		}
	}
	var out []trial
	for _, r := range requests {
		w, err := r.resolve(ref)
		if err != nil {
			return nil, err
		}
		out = append(out, trial{r, w, row{Method: r.method.name, Scheme: w.scheme.Name(), Peers: w.peers, Converged: true}})
	}
	return out, nil
}

// slowAmong keeps the slow ones of the first p peers.
func slowAmong(flags []string, p int) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(s string) bool {
		rank, _, _ := strings.Cut(s, ":")
		r, err := strconv.Atoi(rank)
		return err == nil && r >= p
	})
}

// once runs a trial and adds its times.
func (a *app) once(ctx context.Context, t *trial, interrupt <-chan struct{}) error {
	steps, err := newRecorder(t.work, nil, 1)
	if err != nil {
		return err
	}
	o, err := a.execute(ctx, &t.request, t.work, steps, interrupt)
	if err != nil {
		return err
	}
	e, evolution, err := a.judge(t.work, o, steps, t.request.reconfigure)
	if err != nil {
		return failed(err)
	}
	s := a.describe(&t.request, t.work)
	s.Evolution = evolution
	s.Add(o, t.work.partition, e)
	if err := verdict(s); err != nil {
		fmt.Fprintf(a.err, "obstacle: %s on %d peers: %s\n", s.Scheme, s.Peers, s.Reason)
		return err
	}
	r := &t.row
	r.seconds, r.sweeps = append(r.seconds, s.Seconds), append(r.sweeps, s.SequentialEquivalentSweeps)
	r.Residual = max(r.Residual, s.RelativeResidual)
	r.Messages, r.Bytes, r.Planes = s.Messages, s.Bytes, s.PlanesMoved
	r.Converged = r.Converged && s.Converged
	return nil
}

// sum turns the rounds into a row; one holds the times of the reference.
func (r *row) sum(one []float64) {
	r.Seconds, r.Equivalent = median(r.seconds), median(r.sweeps)
	r.Fastest, r.Slowest = slices.Min(r.seconds), slices.Max(r.seconds)
	r.Efficiency = report.Efficiency(median(one), r.Peers, r.Seconds)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (c *comparison) text(w io.Writer) {
	fmt.Fprintf(w, "%s, n = %v, tolerance %g, %d threads a peer, median of %d rounds\n", c.Problem, c.N, c.Tolerance, c.Threads, c.Rounds)
	table(w, func(w io.Writer) {
		fmt.Fprintln(w, "method\tscheme\tpeers\tseconds\tfastest\tslowest\tefficiency\tequivalent sweeps\tresidual\tmessages\tMB")
		for _, r := range c.Rows {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.0f %%\t%.1f\t%.2e\t%d\t%.1f\n", r.Method, r.Scheme, r.Peers, r.Seconds, r.Fastest, r.Slowest,
				100*float64(r.Efficiency), r.Equivalent, float64(r.Residual), r.Messages, float64(r.Bytes)/1e6)
		}
	})
	for _, r := range c.Rows {
		if r.Planes > 0 {
			fmt.Fprintf(w, "%s on %d peers: %d planes moved in the last round\n", r.Scheme, r.Peers, r.Planes)
		}
	}
	fmt.Fprintf(w, "efficiency is t(1)/(P·t(P)), t(1) that of the method's first row: %s\n", c.Reference)
	report.Lines(w, c.Outputs)
}

// series sorts the rows by scheme, and by method where there are several; every one
// begins at its reference.
func series(rows []row, methods bool) []figure.Series {
	var out []figure.Series
	for at, r := range rows {
		if at == r.one {
			continue
		}
		one, name := rows[r.one], r.Scheme
		if methods {
			name = r.Method + ", " + r.Scheme
		}
		i := slices.IndexFunc(out, func(s figure.Series) bool { return s.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, figure.Series{Name: name, Points: []figure.Point{{Peers: 1, Low: 1, Mid: 1, High: 1}}})
		}
		at := func(t float64) float64 { return float64(report.Efficiency(one.Seconds, r.Peers, t)) }
		out[i].Points = append(out[i].Points, figure.Point{Peers: r.Peers, Low: at(r.Slowest), Mid: at(r.Seconds), High: at(r.Fastest)})
	}
	return out
}
