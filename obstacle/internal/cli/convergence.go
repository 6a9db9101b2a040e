package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type convergence struct {
	Problem   string  `json:"problem"`
	Tolerance float64 `json:"tolerance"`
	Method    string  `json:"method"`
	Exact     bool    `json:"against_exact"` // else against the next finer grid
	Grids     []level `json:"grids"`
	// Order is the slope of a straight line through the logarithms of all errors. The order between two grids varies
	// with the position of the free boundary relative to the grid points.
	Order   nullable.Number `json:"order"`
	Version string          `json:"version"`
}

// level describes one grid. Error is the largest error at the grid points: against the exact solution, or against the
// next finer grid at their common points. Order is the order between this grid and the previous one.
type level struct {
	N          []int           `json:"n"`
	Points     int             `json:"points"`
	Error      nullable.Number `json:"error"`
	Order      nullable.Number `json:"order"`
	ErrorBound nullable.Number `json:"error_bound"` // algebraic
	Residual   nullable.Number `json:"relative_residual"`
	Contact    float64         `json:"contact_share"`
	Upper      float64         `json:"upper_contact_share"`
	Sweeps     float64         `json:"sequential_equivalent_sweeps"`
	Seconds    nullable.Number `json:"seconds"`

	hasUpper bool
	u        []float64
	problem  *problem.Problem
}

func (a *app) convergenceCommand() *cobra.Command {
	q := &request{catalog: a.catalog}
	grids := []int{15, 31, 63}
	c := &cobra.Command{
		Use:   "convergence PROBLEM",
		Short: "Solve on successively finer grids: errors and order of convergence",
		Long: `convergence solves the same problem on a list of grids, in this process, and prints
the largest error at the grid points. Without an exact solution, a grid is compared
with the next finer one at their common points, and every n must be twice the
previous one plus one.`,
		Example: "  obstacle convergence quartic2d --grids 15,31,63",
		Args:    oneArgument("problem"),
		RunE:    func(c *cobra.Command, args []string) error { return a.convergence(c.Context(), q, args[0], grids) },
	}
	f := c.Flags()
	q.flags(f)
	f.IntSliceVar(&grids, "grids", grids, "interior grid points per axis, N1,N2,…, increasing")
	_ = f.MarkHidden("n") // --grids replaces it
	f.Lookup("tol").DefValue, q.Tolerance = "1e-10", 1e-10
	f.Lookup("in-process").DefValue, q.inProcess = "true", true
	q.Scheme, q.peers = "sync", 1
	return grouped(c)
}

func (a *app) convergence(ctx context.Context, q *request, ref string, grids []int) error {
	if err := a.alone("convergence"); err != nil {
		return err
	}
	if q.ofIteration(ref) {
		return usage("convergence %s: that is an iteration of its own, which has no finer grid", ref)
	}
	if len(grids) < 2 {
		return usage("--grids: want at least two, such as 15,31,63")
	}
	ctx, stop := a.interrupts(ctx)
	defer stop()
	c := convergence{Tolerance: q.Tolerance, Version: build.Version()}
	var all []*level
	for i, n := range grids {
		if i > 0 && n <= grids[i-1] {
			return usage("--grids %v: each must be finer than the previous one", grids)
		}
		l, err := a.onGrid(ctx, q, ref, n, &c)
		if err != nil {
			return err
		}
		if all = append(all, l); c.Exact || i == 0 {
			continue
		}
		if n != 2*grids[i-1]+1 {
			return usage("--grids %v: no exact solution is known, so each must contain the previous one: "+
				"%d would follow %d", grids, 2*grids[i-1]+1, grids[i-1])
		}
		all[i-1].Error = nullable.Number(maxDifference(all[i-1], l))
		all[i-1].u = nil
	}
	c.fit(all)
	return a.print(c, c.text)
}

func (c *convergence) fit(all []*level) {
	var h, e []float64
	for _, l := range all {
		if v := math.Log(float64(l.Error)); nullable.Number(v).Known() {
			h, e = append(h, math.Log(l.problem.Spacing(0))), append(e, v)
			if n := len(h); n > 1 {
				l.Order = nullable.Number((e[n-1] - e[n-2]) / (h[n-1] - h[n-2]))
			}
		}
		c.Grids = append(c.Grids, *l)
	}
	c.Order = nullable.NaN()
	if len(h) > 1 {
		_, slope := stat.LinearRegression(h, e, nil, false)
		c.Order = nullable.Number(slope)
	}
}

func (a *app) onGrid(ctx context.Context, q *request, ref string, n int, c *convergence) (*level, error) {
	r := *q
	r.n = fmt.Sprint(n)
	r.label = "n = " + r.n
	w, err := r.resolve(ref)
	if err != nil {
		return nil, err
	}
	s, o, err := a.solution(ctx, &r, w)
	if err != nil {
		return nil, err
	}
	if err := verdict(s); err != nil {
		a.tell(fmt.Sprintf("obstacle: n = %d: %s\n", n, s.Reason))
		return nil, err
	}
	c.Problem, c.Method = s.Problem, s.Method
	c.Exact = w.problem.AtStep(o.Steps).Exact != nil
	return &level{
		N: s.N, Points: s.Points, Seconds: s.Seconds, Sweeps: s.SequentialEquivalentSweeps,
		Error: s.MaxError, Order: nullable.NaN(), ErrorBound: s.ErrorBound, Residual: s.RelativeResidual,
		Contact: float64(s.ContactPoints) / float64(s.Points), Upper: float64(s.UpperContact) / float64(s.Points),
		hasUpper: s.HasUpper, u: o.U, problem: w.problem,
	}, nil
}

// maxDifference returns the largest difference at the common points of two grids.
func maxDifference(coarse, fine *level) float64 {
	worst := 0.0
	for i, at := range (problem.Box{Hi: coarse.problem.N}).Each {
		for a := range coarse.problem.Dimension {
			at[a] *= 2
		}
		worst = max(worst, math.Abs(coarse.u[i]-fine.u[fine.problem.Dense(at)]))
	}
	return worst
}

func (c *convergence) text(w io.Writer) {
	what := "difference to the next grid"
	if c.Exact {
		what = "error"
	}
	fmt.Fprintf(w, "%s, %s, tolerance %g\n", c.Problem, c.Method, c.Tolerance)
	t := report.Tabs(w)
	upper := slices.ContainsFunc(c.Grids, func(l level) bool { return l.hasUpper })
	fmt.Fprintf(t, "n\t%s\torder\talgebraic error at most\tcontact%s\tequivalent sweeps\tseconds\n",
		what, map[bool]string{true: "\tupper contact"}[upper])
	for _, l := range c.Grids {
		contact := fmt.Sprintf("%.2f %%", 100*l.Contact)
		if upper {
			contact += fmt.Sprintf("\t%.2f %%", 100*l.Upper)
		}
		fmt.Fprintf(t, "%v\t%s\t%s\t%s\t%s\t%.1f\t%.3f\n", l.N[0], l.Error.Text("%.4e", ""),
			l.Order.Text("%.2f", ""), l.ErrorBound.Text("%.1e", ""), contact, l.Sweeps, l.Seconds)
	}
	t.Flush()
	if c.Order.Known() {
		fmt.Fprintf(w, "order over all grids: %.2f\n", c.Order)
	}
}
