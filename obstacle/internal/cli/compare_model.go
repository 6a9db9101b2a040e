package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

type modelFlags struct {
	simulation
	machines []int
	files    comparisonFiles // of real runs, too
}

func (o *modelFlags) flags(f *pflag.FlagSet) {
	o.simulation.flags(f)
	f.IntSliceVar(&o.machines, "machines", []int{4, 8, 16}, "with --model: numbers of machines, M1,M2,…")
	o.files.flags(f)
}

// realFlags returns the flags of compare that apply to real runs only.
func realFlags() []string {
	return []string{
		"threads", "in-process", "pin", "network", "clusters", "topology", "slowdown", "peer-timeout", "initial",
		"protect",
		"mtu", "balance", "parts", "peers", "rounds", "ib-device", "ib-port", "ib-gid", "ib-mode", "ib-blocks",
		"ib-block-bytes", "ib-completion",
	}
}

// check returns an error for flags that the kind of comparison does not have.
func (o *modelFlags) check(c *cobra.Command) error {
	changed := func(names []string) string {
		i := slices.IndexFunc(names, func(n string) bool { return c.Flags().Changed(n) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	if o.model == "" {
		if name := changed([]string{"machines", "stand-in", "no-overlap", "csv"}); name != "" {
			return usage("--%s is for simulated runs: give --model, too", name)
		}
		return nil
	}
	if name := changed(realFlags()); name != "" {
		instead := map[string]string{
			"peers": "; give --machines", "clusters": "; the model has sites",
			"slowdown": "; the model has slow machines", "parts": "; obstacle simulate has parts",
			"balance": "; obstacle simulate moves parts",
		}
		return usage("--%s is for real runs, but --model simulates%s", name, instead[name])
	}
	return o.simulation.check()
}

func (a *app) compareOn(ctx context.Context, q *request, o *modelFlags, ref string, all selection) error {
	if err := o.files.check(".csv", ".tex"); err != nil {
		return err
	}
	f, err := a.openModel(o.model, q.calibrationBlock(o.machines...))
	if err != nil {
		return err
	}
	if len(all.schemes) == 0 {
		all.schemes = []string{"sync", "async"}
		if len(f.Sites) > 1 {
			all.schemes = append(all.schemes, "hybrid")
		}
	}
	if len(o.machines) == 0 {
		return usage("nothing to compare: give --machines")
	}
	if err := q.checkShared(all.methods, all.schemes); err != nil {
		return err
	}
	all.peers = o.machines
	var compared []*methodComparison
	var runs []*virtualRun
	for _, name := range all.methods {
		m, err := a.compareMethod(q, &o.simulation, f, ref, name, all)
		if err != nil {
			return err
		}
		compared, runs = append(compared, m), append(runs, m.runs()...)
	}
	if len(runs) == 0 {
		return compared[0].rows[0].refused
	}
	ctx, stop := stoppable(ctx)
	defer stop()
	if err := a.simulateAll(ctx, runs); err != nil {
		return err
	}
	c := report.SimulatedComparison{Subject: runs[0].subject(&o.simulation, f)}
	c.Method = strings.Join(all.methods, ",")
	var rows []*virtualRun
	var candidates []report.Candidate
	for _, m := range compared {
		m.addRows(&c)
		rows = append(rows, m.rows...)
		candidates = append(candidates, m.candidates(c.Rows[len(c.Rows)-len(m.rows):], c.References[len(c.References)-1])...)
	}
	interrupted := error(nil)
	if ctx.Err() == nil {
		c.Judge(coarserTimes(rows), uncorrected(rows))
		candidates = append(candidates, a.simulateBest(ctx, a.bestOn(q, &o.simulation, f, ref, all), candidates)...)
	}
	if ctx.Err() != nil {
		c.Interrupted, interrupted = true, errInterrupted
	} else {
		c.Best = report.BestOf(candidates, c.StandIns())
	}
	written := o.files.write(map[string]func(io.Writer) error{".csv": c.CSV, ".tex": c.Latex},
		fmt.Sprintf("%s, n = %v, %s", c.Problem, c.N, c.Model), simulatedSeries(&c))
	written.wait(q.PeerTimeout, 0)
	c.Outputs = written.prompt(ctx)
	return cmp.Or(a.print(&c, c.Text), a.finish(ctx, written), worst(rows, (*virtualRun).verdict), interrupted)
}

// uncorrected returns the methods whose times on the full grid do not follow from those on a stand-in.
func uncorrected(rows []*virtualRun) (methods []string) {
	for _, r := range rows {
		if r.Scale > 1 && r.growth() == report.Unknown {
			methods = append(methods, r.work.method.Name)
		}
	}
	return methods
}

// coarserTimes returns the times of the rows on the coarser stand-in, unknown where there is none.
func coarserTimes(rows []*virtualRun) (out []nullable.Number) {
	for _, r := range rows {
		t := nullable.NaN()
		if r.coarser != nil {
			t = r.coarser.figures.Met
		}
		out = append(out, t)
	}
	return out
}

// worst returns the error of the row whose exit code is most important: failures come before stopped runs, and those
// before refused ones.
func worst[T any](rows []T, verdict func(T) error) error {
	weight := func(r T) int {
		return slices.Index([]int{ExitSolved, ExitUsage, ExitStopped, ExitFailed}, exitCode(verdict(r)))
	}
	return verdict(slices.MaxFunc(rows, func(a, b T) int { return weight(a) - weight(b) }))
}

// simulatedSeries returns the lines of a figure: one per scheme, and per method if there are several.
func simulatedSeries(c *report.SimulatedComparison) []figure.Series {
	var out []figure.Series
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Efficiency.Known() {
			continue
		}
		e := float64(r.Efficiency)
		out = figure.Append(out, c.Name(r), figure.Point{Peers: r.Machines, Low: e, Mid: e, High: e})
	}
	for _, s := range out {
		slices.SortFunc(s.Points, func(a, b figure.Point) int { return a.Peers - b.Peers })
	}
	return out
}
