package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// explanation is the JSON of explain.
type explanation struct {
	Problem    file.Description `json:"problem"`
	N          []int            `json:"n"`
	Unknowns   int              `json:"unknowns"` // in each time step
	Spacing    []float64        `json:"spacing"`
	Stencil    int              `json:"stencil_points"`
	TimeSteps  int              `json:"time_steps"` // 0 for a stationary problem
	Tolerance  float64          `json:"tolerance"`
	AtLeast    int64            `json:"memory_at_least_bytes"` // of all processes together
	HostMemory nullable.Count   `json:"host_memory_bytes"`     // null if unknown
	Choices    []decision       `json:"choices"`
	Methods    []solver.Other   `json:"other_methods"` // that were not chosen; empty if --method names one
	Warnings   []string         `json:"warnings"`
	Next       string           `json:"next"` // the command that solves it
}

func (a *app) explainCommand() *cobra.Command {
	s := &solveFlags{request: &request{catalog: a.catalog}}
	c := &cobra.Command{
		Use:   "explain PROBLEM",
		Short: "Explain a problem, and what solve would choose for it and why",
		Long: `explain says what solve with the same flags would solve (equation, domain, obstacles,
grid, memory) and what it would choose (method, scheme, peers, threads, partition,
network, kernel, recovery), with the reasons. It starts no peer and solves nothing.
Bad flags are refused as solve refuses them.`,
		Example: `  obstacle explain membrane --n 128 --scheme async
  obstacle explain examples/problems/torsion.yaml --method multigrid --format json`,
		Args: oneArgument("problem"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := a.explainSolve(c.Context(), s, c.Flags(), args[0])
			if err != nil {
				return err
			}
			return a.print(e, e.text)
		},
	}
	s.add(c.Flags())
	return grouped(c)
}

// explainSolve explains the solve of the same flags. Its errors are those that solve has before it starts peers.
func (a *app) explainSolve(ctx context.Context, s *solveFlags, f *pflag.FlagSet, ref string) (*explanation, error) {
	q := s.request
	if err := a.chooseHosts(ctx, q); err != nil {
		return nil, err
	}
	w, err := q.resolve(ref)
	if err != nil {
		return nil, err
	}
	if err := q.enclosing.check(w.problem); err != nil {
		return nil, err
	}
	for _, o := range s.out {
		if err := output.CheckProblem(o, w.problem); err != nil {
			return nil, badInput(err)
		}
	}
	if _, err := probePoints(s.probes, w.problem); err != nil {
		return nil, badInput(err)
	}
	if _, err := newRecorder(w, s.out, s.outEvery, q.PeerTimeout); err != nil {
		return nil, err
	}
	if q.rendezvous == "" {
		p := launch.Plan{
			Catalog: a.catalog, Problem: w.problem,
			Spec: rendezvous.Spec{
				Partition: w.partition, Scheme: q.Scheme, Method: w.method, Rails: q.Rails,
			},
		}
		if _, err := a.adapters(q, w, &p); err != nil {
			return nil, err
		}
	}
	d, n := w.spec.Dimension(), w.problem.N
	e := &explanation{
		Problem: w.spec.Describe(), N: slices.Clone(n[:d]), Unknowns: w.problem.Points(), Stencil: 2*d + 1,
		TimeSteps: w.problem.Steps(), Tolerance: q.Tolerance, AtLeast: memoryAtLeast(w),
		HostMemory: nullable.Measured(int64(host.Memory())), Warnings: append([]string{}, w.problem.Warnings()...), //nolint:gosec // below 2⁶³
		Next: "obstacle solve " + spelling.File(ref) + repeated(f),
	}
	if w.problem.FixedPoint != nil {
		d, e.Stencil = 0, 0
	}
	for x := range d {
		e.Spacing = append(e.Spacing, w.problem.Spacing(x))
	}
	if o := w.spec.Option(); o != nil {
		e.Warnings = append(e.Warnings, o.Warnings()...)
	}
	if m := memoryWarning(e.AtLeast, int64(e.HostMemory)); m != "" && q.rendezvous == "" {
		e.Warnings = append(e.Warnings, m)
	}
	e.Choices, e.Methods = q.choices(w, f), append([]solver.Other{}, w.choice.Others...)
	return e, nil
}

// repeated returns the flags that were given, for a command line.
func repeated(f *pflag.FlagSet) string {
	out := ""
	f.Visit(func(g *pflag.Flag) {
		if g.Name == "format" || g.Name == "color" {
			return
		}
		values := []string{g.Value.String()}
		if many, is := g.Value.(pflag.SliceValue); is {
			values = many.GetSlice()
			if g.Value.Type() != "stringArray" {
				values = []string{shortList(values)}
			}
		}
		for _, v := range values {
			if out += " --" + g.Name; g.NoOptDefVal == "" {
				out += " " + spelling.Word(v)
			}
		}
	})
	return out
}

// shortList joins values, numbers without zeros at their end.
func shortList(values []string) string {
	for i, v := range values {
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			values[i] = fmt.Sprint(x)
		}
	}
	return strings.Join(values, ",")
}

// memoryWarning returns a warning if a run needs more memory than this host has, or "". have is negative if unknown.
func memoryWarning(need, have int64) string {
	if have <= 0 || need <= have {
		return ""
	}
	return fmt.Sprintf("the run needs at least %s of memory, and this host has %s: "+
		"give a smaller --n, or spread it over several hosts with --rendezvous", bytesText(need), bytesText(have))
}

// memoryAtLeast returns the bytes of the arrays that every run has: the answer, and in each block the obstacles and one
// iterate, or two for Richardson's method.
func memoryAtLeast(w *work) int64 {
	arrays := 2
	if w.method.Name == problem.Richardson {
		arrays = 3
	}
	p := w.problem.AtStep(min(1, w.problem.Steps()))
	if p.Upper != nil && p.Obstacle != nil {
		arrays++
	}
	return 8 * int64(w.problem.Points()) * int64(1+arrays)
}

// choices returns what solve chooses for w, with the reasons. f are the flags that were given.
func (q *request) choices(w *work, f *pflag.FlagSet) []decision {
	reason := func(flag, otherwise string) string {
		if f.Changed(flag) {
			return "--" + flag
		}
		return otherwise
	}
	method := decision{"method", w.method.Name, w.methodWhy}
	if w.method.Name == problem.Schwarz {
		method.Value += " with " + w.method.Local
	}
	if w.choice.Name == "" && w.method.Name != q.method.Name {
		method.Why = fmt.Sprintf("--method %s with --scheme %s: without lockstep it becomes the method of each peer on its box",
			q.method.Name, q.Scheme)
	}
	if w.method.Next != "" {
		method.Why += "; where it converges slowly, the run tries " + w.method.Next + " and goes on with the faster one"
	}
	scheme := decision{"scheme", w.scheme.Name(), reason("scheme", "the default")}
	for _, help := range q.catalog.Schemes.Help() {
		if about, is := strings.CutPrefix(help, scheme.Value+": "); is {
			scheme.Why += ": " + about
		}
	}
	parts := w.partition.Parts()
	largest := 0
	for r := range w.partition.Peers() {
		largest = max(largest, w.partition.Box(iterate.Rank(r)).Points()) //nolint:gosec // few
	}
	best := kernel.Best()
	out := []decision{
		method, scheme,
		{"peers", peersText(w, q.inProcess), cmp.Or(w.chosenBecause, given(f, "peers", "threads", "weights"))},
		{"partition", fmt.Sprintf("%s parts, the largest of %d points", axesText(parts[:w.problem.Dimension]), largest),
			w.partitionWhy},
		q.networkOf(w),
		{"kernel", best.Name(), best.Description()},
		q.recoveryOf(w),
	}
	if w.problem.FixedPoint != nil { // it relaxes by itself
		out = slices.DeleteFunc(out, func(d decision) bool { return d.What == "kernel" })
	}
	if w.balance != "" && q.balance != "off" {
		out = append(out, decision{"balance", w.balance, "--balance on"})
	}
	return out
}

// given names the flags of names that were given.
func given(f *pflag.FlagSet, names ...string) string {
	var out []string
	for _, n := range names {
		if f.Changed(n) {
			out = append(out, "--"+n)
		}
	}
	return strings.Join(out, " and ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func peersText(w *work, inProcess bool) string {
	where := "each a process"
	if inProcess {
		where = "all in this process"
	}
	return fmt.Sprintf("%s of %s, %s", counted(w.peers, "peer"), counted(w.threads, "thread"), where)
}

// axesText returns numbers of each axis, such as 64 × 32.
func axesText(n []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n)), " × "), "[]")
}

// networkOf returns the network between the peers.
func (q *request) networkOf(w *work) decision {
	d := decision{What: "network", Value: q.Rails.Network, Why: "--network"}
	switch {
	case q.Rails.Network != rail.Auto:
	case w.peers == 1 && w.partition.Peers() == 1:
		d.Value, d.Why = "none", "one peer exchanges no halos"
	case q.inProcess:
		d.Value, d.Why = rail.Memory, "the peers are in one process"
	case q.rendezvous != "":
		d.Value, d.Why = "chosen for each pair", "the best that both ends have, in the order shm, ib, ether"
	default:
		_, v := infiniBandHere()
		d = localNetwork(sharedHere().Missing, betweenHosts(&v))
		d.What = "network"
	}
	return d
}

// recoveryOf returns what happens when a peer is lost.
func (q *request) recoveryOf(w *work) decision {
	mode, why := launch.Recovery(q.Recover, w.problem.Steps() > 0, q.Spares)
	return decision{"recovery", mode, why}
}

func (e *explanation) text(w io.Writer) {
	for line := range strings.Lines(e.Problem.String()) {
		if !strings.HasPrefix(line, "fingerprint") {
			fmt.Fprint(w, line)
		}
	}
	line := func(key, format string, values ...any) {
		fmt.Fprintf(w, "%-12s %s\n", key, fmt.Sprintf(format, values...))
	}
	var h []string
	for _, v := range e.Spacing {
		h = append(h, fmt.Sprintf("%.4g", v))
	}
	if e.Stencil > 0 {
		line("grid", "%s interior points, spacing %s: %d unknowns", axesText(e.N), strings.Join(h, " × "), e.Unknowns)
		line("discretised", "finite differences on %d points", e.Stencil)
	} else {
		line("unknowns", "%d, in one vector", e.Unknowns)
	}
	if e.TimeSteps > 0 {
		line("", "%d steps of implicit Euler, each an obstacle problem", e.TimeSteps)
	}
	if e.Stencil > 0 {
		line("stops", "at a relative residual of the variational inequality of %g", e.Tolerance)
	} else {
		line("stops", "at ‖x − F(x)‖ of %g relative to the starting values", e.Tolerance)
	}
	have := ""
	if e.HostMemory > 0 {
		have = fmt.Sprintf("; this host has %s", bytesText(int64(e.HostMemory)))
	}
	line("memory", "at least %s in all processes%s", bytesText(e.AtLeast), have)
	fmt.Fprintln(w)
	for _, c := range e.Choices {
		line(c.What, "%s: %s", c.Value, c.Why)
		if c.What != "method" {
			continue
		}
		for _, o := range e.Methods {
			line("", "not %s: %s", o.Name, o.Why)
		}
	}
	for _, s := range e.Warnings {
		line("warning", "%s", s)
	}
	line("to solve", "%s", e.Next)
}
