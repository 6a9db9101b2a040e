package cli

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// row is one scheme on a number of peers: medians over the rounds. Values are null if a run was refused or did not
// solve the problem.
type row struct {
	Method     string          `json:"method"`
	Scheme     string          `json:"scheme"`
	Peers      int             `json:"peers"`
	Seconds    nullable.Number `json:"seconds"`
	Fastest    nullable.Number `json:"seconds_fastest"`
	Slowest    nullable.Number `json:"seconds_slowest"`
	Efficiency nullable.Number `json:"efficiency"`
	Together   nullable.Number `json:"peers_together"` // their speed as a multiple of the reference's
	Equivalent nullable.Number `json:"sequential_equivalent_sweeps"`
	Residual   nullable.Number `json:"relative_residual"` // maximum over the rounds
	Messages   *uint64         `json:"messages"`          // of the last round, as all below
	Planes     *int            `json:"planes_moved"`
	Bytes      *uint64         `json:"bytes"`
	Idle       nullable.Number `json:"idle_share"`    // of the processor time that the peers had
	Converged  bool            `json:"converged"`     // in every round
	Why        string          `json:"why,omitempty"` // reason if it did not

	seconds   []float64
	sweeps    []float64
	residuals []figure.Sample // of the last round
	reference int             // index of the row of t(1), which has the same method
	err       error           // of the first round that was not solved
}

func (c *comparison) verdict() error {
	err := worst(c.Rows, func(r row) error { return r.err })
	if err == nil {
		return nil
	}
	return &exitError{code: exitCode(err)} // the rows show the reasons
}

func (c *comparison) summarize() {
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.err != nil {
			r.unsolved()
			continue
		}
		r.Seconds, r.Equivalent = nullable.Number(median(r.seconds)), nullable.Number(median(r.sweeps))
		r.Fastest, r.Slowest = nullable.Number(slices.Min(r.seconds)), nullable.Number(slices.Max(r.seconds))
	}
	for i := range c.Rows {
		if r := &c.Rows[i]; r.err == nil {
			r.Efficiency = report.Efficiency(c.Rows[r.reference].Seconds, float64(r.Together), r.Seconds)
		}
	}
}

func (r *row) unsolved() {
	r.Converged, r.Why = false, r.err.Error()
	r.Messages, r.Bytes = nil, nil
	r.Planes = nil
	for _, n := range []*nullable.Number{&r.Seconds, &r.Fastest, &r.Slowest, &r.Equivalent, &r.Efficiency, &r.Idle} {
		*n = nullable.NaN()
	}
	if len(r.seconds) == 0 && r.Residual == 0 {
		r.Residual = nullable.NaN()
	}
}

// title returns the title of the figure, which names the rows that were not solved.
func (c *comparison) title() string {
	out, sep := fmt.Sprintf("%s, n = %v, tolerance %g", c.Problem, c.N, c.Tolerance), "; not solved: "
	for _, r := range c.Rows {
		if r.Why != "" {
			out += fmt.Sprintf("%s%s, %s on %d", sep, r.Method, r.Scheme, r.Peers)
			sep = "; "
		}
	}
	return out
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (c *comparison) text(w io.Writer, paint painter) {
	fmt.Fprintf(w, "%s, n = %v, tolerance %g, %s per peer, median of %d rounds\n",
		c.Problem, c.N, c.Tolerance, counted(c.Threads, "thread"), c.Rounds)
	t := report.Tabs(w)
	fmt.Fprintln(t,
		"method\tscheme\tpeers\tseconds\tfastest\tslowest\tefficiency\tequivalent sweeps\tresidual\tmessages\tMB")
	for _, r := range c.Rows {
		if r.Why != "" {
			fmt.Fprintf(t, "%s\t%s\t%d\t–\t–\t–\t–\t–\t–\t–\t–\n", r.Method, r.Scheme, r.Peers)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%s\t%.1f\t%.2e\t%d\t%.1f\n",
			r.Method, r.Scheme, r.Peers, r.Seconds, r.Fastest, r.Slowest,
			(100*r.Efficiency).Text("%.0f %%", "–"), r.Equivalent, r.Residual, *r.Messages, float64(*r.Bytes)/1e6)
	}
	t.Flush()
	for _, r := range c.Rows {
		switch {
		case r.Why != "":
			fmt.Fprintf(w, "not solved: %s, %s, --peers %d: %s\n", r.Method, r.Scheme, r.Peers, spelling.Visible(r.Why))
		case *r.Planes > 0:
			fmt.Fprintf(w, "%s on %d peers: %d planes moved in the last round\n", r.Scheme, r.Peers, *r.Planes)
		}
	}
	fmt.Fprintf(w, "efficiency is t(1)/(k·t), t(1) that of the method's first row: %s; k peers like it are as fast as all together%s\n",
		c.Reference, c.unequal())
	c.draw(w)
	if c.Verdict != nil {
		fmt.Fprintf(w, "%s\n", paint(bold, c.Verdict.Sentence))
	}
	if c.Best != nil {
		fmt.Fprintln(w, c.Best.Sentence)
	}
	report.Lines(w, c.Outputs)
}

// unequal names the speed of peers of which some are slowed down.
func (c *comparison) unequal() string {
	out, seen := "", map[int]bool{}
	for _, r := range c.Rows {
		if float64(r.Together) != float64(r.Peers) && !seen[r.Peers] {
			out += fmt.Sprintf(", %.4g of %d", float64(r.Together), r.Peers)
			seen[r.Peers] = true
		}
	}
	return out
}

// series returns the lines of a figure: one per scheme, and per method if there are several. Each starts at its
// reference.
func series(rows []row, methods bool) []figure.Series {
	var out []figure.Series
	for at, r := range rows {
		if at == r.reference || !r.Efficiency.Known() {
			continue
		}
		one, name := rows[r.reference], r.Scheme
		if methods {
			name = r.Method + ", " + r.Scheme
		}
		at := func(t nullable.Number) float64 {
			return float64(report.Efficiency(one.Seconds, float64(r.Together), t))
		}
		p := figure.Point{Peers: r.Peers, Low: at(r.Slowest), Mid: at(r.Seconds), High: at(r.Fastest)}
		out = figure.Append(out, name, p, figure.Point{Peers: 1, Low: 1, Mid: 1, High: 1})
	}
	return out
}
