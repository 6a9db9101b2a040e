package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/report"
)

// onModel are the flags of compare for a simulated comparison.
type onModel struct {
	simulation
	machines []int
	csv      string
}

func (o *onModel) flags(f *pflag.FlagSet) {
	o.simulation.flags(f)
	f.IntSliceVar(&o.machines, "machines", []int{4, 8, 16}, "with --model: numbers of machines, M1,M2,…")
	f.StringVar(&o.csv, "csv", "", "with --model: write the table to a file")
}

// realFlags are the flags of compare that say how real peers run.
func realFlags() []string {
	return []string{
		"threads", "in-process", "network", "clusters", "topology", "slow", "peer-timeout", "initial", "protect", "mtu", "reconfigure", "balance",
		"peers", "rounds", "methods", "ib-device", "ib-port", "ib-gid", "ib-mode", "ib-blocks", "ib-block-bytes", "ib-completion",
	}
}

// fits refuses flags that the kind of comparison does not have.
func (o *onModel) fits(c *cobra.Command) error {
	changed := func(names []string) string {
		i := slices.IndexFunc(names, func(n string) bool { return c.Flags().Changed(n) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	if o.model == "" {
		if name := changed([]string{"machines", "stand-in", "late", "csv"}); name != "" {
			return usage("--%s is of simulated runs: give --model too", name)
		}
		return nil
	}
	if name := changed(realFlags()); name != "" {
		instead := map[string]string{"peers": "; give --machines", "clusters": "; the model has sites", "slow": "; the model has slow machines", "methods": "; give --method"}
		return usage("--%s is of real runs, and --model simulates them%s", name, instead[name])
	}
	return o.simulation.check()
}

// compareOn compares schemes on the model of a cluster.
func (a *app) compareOn(ctx context.Context, q *request, o *onModel, ref string, schemes []string, out []string) error {
	if o.csv != "" {
		out = append(slices.Clone(out), o.csv)
	}
	for i, name := range out {
		if name != o.csv && !isCSV(name) {
			if err := figure.Check(name); err != nil {
				return badInput(fmt.Errorf("%w; a table is .csv", err))
			}
		}
		if slices.Contains(out[:i], name) {
			return usage("--out %s is given twice", name)
		}
	}
	f, err := a.openModel(o.model, q.blockOf(o.machines...))
	if err != nil {
		return err
	}
	if len(schemes) == 0 {
		schemes = []string{"sync", "async"}
		if len(f.Sites) > 1 {
			schemes = append(schemes, "hybrid")
		}
	}
	if len(o.machines) == 0 {
		return usage("nothing to compare: give --machines")
	}
	var runs []*virtualRun
	for _, s := range schemes {
		for _, m := range o.machines {
			r, err := a.prepare(q, &o.simulation, f, ref, s, m)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
	}
	rows := slices.Clone(runs)
	var one *virtualRun
	like := slices.IndexFunc(runs, (*virtualRun).sequential)
	if like < 0 {
		if one, err = a.alone(q, &o.simulation, f, ref); err != nil {
			return err
		}
		runs = append(runs, one)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := a.play(ctx, runs); err != nil {
		return err
	}
	if i := slices.IndexFunc(rows, func(r *virtualRun) bool { return r.sequential() && r.figures.Converged }); i >= 0 {
		like = i
	}
	c := report.SimulatedComparison{Subject: rows[0].subject(&o.simulation, f), Outputs: []string{}}
	alone, about := reference(one, rows[max(like, 0)])
	c.Reference, c.Alone = about, known(alone.Seconds)
	for _, r := range rows {
		r.figures.Against(alone, r.costing())
		c.Costing = max(c.Costing, r.costing())
		c.Rows = append(c.Rows, r.figures)
	}
	for _, name := range out {
		if err := writeComparison(name, name == o.csv, &c); err != nil {
			return failed(err)
		}
		c.Outputs = append(c.Outputs, name)
	}
	if err := a.print(&c, c.Text); err != nil {
		return err
	}
	return worst(rows)
}

// worst is the exit code of all rows: a failure comes before a run that was stopped.
func worst(rows []*virtualRun) error {
	var stopped error
	for _, r := range rows {
		err := r.verdict()
		var e *exitError
		if errors.As(err, &e) && e.code == ExitFailed {
			return err
		}
		if stopped == nil {
			stopped = err
		}
	}
	return stopped
}

func isCSV(name string) bool { return strings.EqualFold(filepath.Ext(name), ".csv") }

func writeComparison(name string, csv bool, c *report.SimulatedComparison) error {
	if csv || isCSV(name) {
		return writeFile(name, c.CSV)
	}
	return figure.Write(name, fmt.Sprintf("%s, n = %v, %s", c.Problem, c.N, c.Model), simulatedSeries(c.Rows))
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// simulatedSeries sorts the rows by scheme.
func simulatedSeries(rows []report.Simulated) []figure.Series {
	var out []figure.Series
	for i := range rows {
		r := &rows[i]
		if !r.Efficiency.Is() {
			continue
		}
		at := slices.IndexFunc(out, func(s figure.Series) bool { return s.Name == r.Scheme })
		if at < 0 {
			at = len(out)
			out = append(out, figure.Series{Name: r.Scheme})
		}
		e := float64(r.Efficiency)
		out[at].Points = append(out[at].Points, figure.Point{Peers: r.Machines, Low: e, Mid: e, High: e})
	}
	for _, s := range out {
		slices.SortFunc(s.Points, func(a, b figure.Point) int { return a.Peers - b.Peers })
	}
	return out
}
