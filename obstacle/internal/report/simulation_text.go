package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Text writes the simulation as text.
func (s *Simulation) Text(w io.Writer) {
	t := Tabs(w)
	defer t.Flush()
	fmt.Fprintf(t, "problem\t%s, %s points%s\n", s.Problem, grid(s.N), s.standIn())
	fmt.Fprintf(t, "model\t%s: %s, parts %s%s\n", s.Model, plural(s.Machines, "machine"), grid(s.Partition), s.each())
	fmt.Fprintf(t, "method\t%s, scheme %s, order %s%s\n", s.Method, s.Scheme, s.Order,
		map[bool]string{true: ", without overlap"}[s.Late])
	fmt.Fprintf(t, "result\t%s after %.6g s of virtual time (set-up %.3g s)\n", s.Reason, s.Seconds, s.Setup)
	s.SimulatedSteps.text(t)
	if s.Met.Known() && s.SimulatedSteps == nil {
		fmt.Fprintf(t, "tolerance\tmet after %.6g s and %.1f sweeps; the peers detected it at the end\n",
			s.Met, s.MetSweeps)
	}
	losses(t, s.Losses)
	moves(t, s.Moves)
	s.successionText(t)
	fmt.Fprintf(t, "residual\t%s relative, recomputed (tolerance %g)\n", value(s.Residual), s.Tolerance)
	fmt.Fprintf(t, "sweeps\t%.6g to %.6g, as many points as %.1f sequential sweeps", s.Fewest, s.Most, s.Equivalent)
	if s.Steady.Known() {
		fmt.Fprintf(t, "; one takes %.4g s", s.Steady)
	}
	fmt.Fprintln(t)
	if s.Efficiency.Known() {
		fmt.Fprintf(t, "efficiency\t%.1f %%, of %.6g s%s; t(1) = %.6g s: %s; all machines together are as fast as %.4g of it\n",
			100*s.Efficiency, s.Comparable, s.onFullGrid(), s.Alone, s.Reference, s.Together)
	}
	fmt.Fprintf(t, "time\trelaxing %.1f %%, protocol %.1f %%, idle %.1f %%\n", 100*s.Relaxing, 100*s.Protocol,
		100*s.Idle)
	fmt.Fprintf(t, "traffic\t%d messages, %d segments, %.1f MB, %d segments lost\n",
		s.Messages, s.Segments, float64(s.Bytes)/1e6, s.Lost)
	if s.MeanAge.Known() {
		fmt.Fprintf(t, "staleness\t%.2f sweeps; %s\n", s.MeanAge, histogram(s.Staleness))
	}
	e := s.Simulation
	fmt.Fprintf(t, "simulated\t%d events, %d segments in %.2f s here (%.3g segments/s); seed %d\n",
		e.Events, e.Segments, e.WallSeconds, e.SegmentsPerSecond, s.Seed)
	for _, source := range s.Sources {
		fmt.Fprintf(t, "source\t%s\n", source)
	}
}

// each describes how many parts each machine has at the start, if it has several.
func (s *Simulated) each() string {
	if s.Parts <= 1 {
		return ""
	}
	return fmt.Sprintf(", %d each at the start", s.Parts)
}

func (s *Subject) standIn() string {
	if s.StandIn <= 1 {
		return ""
	}
	coarse := make([]int, len(s.N))
	for a, n := range s.N {
		coarse[a] = n / s.StandIn
	}
	return fmt.Sprintf("; %s are relaxed, and the number of sweeps is theirs", grid(coarse))
}

// histogram returns the shares of the ages in percent.
func histogram(counts []uint64) string {
	all := uint64(0)
	for _, n := range counts {
		all += n
	}
	var parts []string
	for i, n := range counts {
		ages := "older"
		if i < iterate.AgeBounds {
			ages = fmt.Sprint(iterate.AgeBound(i))
			if i > 0 && iterate.AgeBound(i) > iterate.AgeBound(i-1)+1 {
				ages = fmt.Sprintf("%d–%s", iterate.AgeBound(i-1)+1, ages)
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %.1f %%", ages, 100*float64(n)/float64(all)))
	}
	return "age " + strings.Join(parts, ", ")
}

// SimulatedComparison is the JSON of compare on a model. It is the same for the same seed.
type SimulatedComparison struct {
	Subject                   // without t(1) if there are several methods: see References
	References []Reference    `json:"references"` // one per method
	Rows       []SimulatedRow `json:"rows"`
	Outputs    []Output       `json:"outputs"`

	Verdict *Verdict `json:"verdict"` // null if no two rows with the same number of machines were solved
	Best    *Best    `json:"best"`
	// Interrupted reports that not all runs ended. A verdict that depends on one that did not is null.
	Interrupted bool `json:"interrupted"`
}

// Reference describes t(1) of a method.
type Reference struct {
	Method    string          `json:"method"`
	Reference string          `json:"reference"`
	Alone     nullable.Number `json:"reference_seconds"`      // until the tolerance was met
	About     string          `json:"method_about,omitempty"` // the method that replaces it in some schemes
}

// SimulatedRow is a run with the requested method.
type SimulatedRow struct {
	Method string `json:"method"`
	Simulated

	Residuals []figure.Sample `json:"-"` // in virtual time, for the text
}

// Refer adds the reference of a method.
func (c *SimulatedComparison) Refer(r Reference) {
	c.References = append(c.References, r)
	if c.Reference, c.Alone = r.Reference, r.Alone; len(c.References) > 1 {
		c.Reference, c.Alone = "one of each method, see references", nullable.NaN()
	}
}

// Name returns the name of a line in a figure: the scheme, with the method if there are several.
func (c *SimulatedComparison) Name(r *SimulatedRow) string {
	if len(c.References) > 1 {
		return r.Method + ", " + r.Scheme
	}
	return r.Scheme
}

// Text writes the comparison as text.
func (c *SimulatedComparison) Text(w io.Writer) {
	fmt.Fprintf(w, "%s, %s points%s\n%s, order %s, tolerance %g, on model %s, seed %d\n",
		c.Problem, grid(c.N), c.standIn(), c.Method, c.Order, c.Tolerance, c.Model, c.Seed)
	t := Tabs(w)
	fmt.Fprintln(t, "method\tscheme\tmachines\tseconds\tmet\tcomparable\tefficiency\tequivalent sweeps\tresidual"+
		"\trelaxing\tprotocol\tidle\tmessages\tsegments\tMB\tlost\tage")
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Reason == ReasonRefused {
			fmt.Fprintf(t, "%s\t%s\t%d%s\n", r.Method, r.Scheme, r.Machines, strings.Repeat("\t–", 14))
			continue
		}
		comparable := "–"
		if r.Efficiency.Known() {
			comparable = fmt.Sprintf("%.5g", r.Comparable)
		}
		if r.ComparableLow < r.ComparableHigh {
			comparable += fmt.Sprintf(" (%.3g–%.3g)", r.ComparableLow, r.ComparableHigh)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.5g\t%s\t%s\t%s\t%.1f\t%s\t%.1f %%\t%.1f %%\t%.1f %%\t%d\t%d\t%.1f\t%d\t%s\n",
			r.Method, r.Scheme, r.Machines, r.Seconds, r.Met.Text("%.5g", "–"), comparable,
			(100*r.Efficiency).Text("%.1f %%", "–"), r.Equivalent, value(r.Residual), 100*r.Relaxing, 100*r.Protocol,
			100*r.Idle, r.Messages, r.Segments, float64(r.Bytes)/1e6, r.Lost, r.MeanAge.Text("%.2f", "–"))
	}
	t.Flush()
	for i := range c.Rows {
		if r := &c.Rows[i]; !r.Converged {
			fmt.Fprintf(w, "%s on %s: %s\n", c.Name(r), plural(r.Machines, "machine"),
				spelling.Visible(cmp.Or(r.Failure, r.Reason)))
		}
	}
	if len(c.References) > 1 {
		fmt.Fprintln(w,
			"efficiency is t(1)/(k·t), t(1) that of the method; k machines like the one of t(1) are as fast as all together; "+
				"age is that of the faces read, in sweeps")
		for _, r := range c.References {
			fmt.Fprintf(w, "t(1) of %s = %s s: %s\n", r.Method, value(r.Alone), r.Reference)
		}
	} else {
		fmt.Fprintf(w, "efficiency is t(1)/(k·t), t(1) = %s s: %s; k machines like it are as fast as all together%s; "+
			"age is that of the faces read, in sweeps\n", value(c.Alone), c.Reference, c.unequal())
	}
	for _, r := range c.References {
		if r.About != "" {
			fmt.Fprintln(w, r.About)
		}
	}
	fmt.Fprintln(w, "seconds: until the peers stopped; met: until the residual met the tolerance; "+
		"comparable, the time of efficiency: met"+c.estimated())
	c.draw(w)
	if c.Verdict != nil {
		fmt.Fprintf(w, "%s\n", c.Verdict.Sentence)
	}
	if c.Best != nil {
		fmt.Fprintln(w, c.Best.Sentence)
	}
	switch {
	case c.Interrupted && c.Verdict == nil:
		fmt.Fprintln(w, "no verdict: the comparison was interrupted")
	case c.Interrupted:
		fmt.Fprintln(w, "the best methods are unknown: the comparison was interrupted")
	}
	Lines(w, c.Outputs)
}

// StandIns names the two stand-ins; empty: the full grid is simulated.
func (s *Subject) StandIns() string {
	switch {
	case s.StandIn <= 1:
		return ""
	case s.Coarser == 0:
		return fmt.Sprint(s.StandIn)
	}
	return fmt.Sprintf("%d and %d", s.Coarser, s.StandIn)
}

// estimated describes the estimate for the full grid.
func (s *Subject) estimated() string {
	switch {
	case s.StandIn <= 1:
		return ""
	case s.Coarser == 0:
		return ",\non the stand-in: there is no coarser grid from which to estimate it on the full grid"
	}
	return fmt.Sprintf(",\nestimated on the full grid from the same runs with --stand-in %d and %d", s.Coarser, s.StandIn)
}

// onFullGrid describes the bounds of the estimate for the full grid.
func (s *Simulation) onFullGrid() string {
	switch {
	case s.StandIn <= 1:
		return ""
	case !s.ComparableLow.Known():
		return " on the stand-in; there is no estimate for the full grid, as the network is full or no coarser one divides --n"
	}
	return fmt.Sprintf(" (%.6g to %.6g) on the full grid, from stand-ins %d and %d", s.ComparableLow, s.ComparableHigh,
		s.Coarser, s.StandIn)
}

// unequal lists the speeds of clusters whose machines are not all like the one of t(1).
func (c *SimulatedComparison) unequal() string {
	out, seen := "", map[int]bool{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Together.Known() && float64(r.Together) != float64(r.Machines) && !seen[r.Machines] {
			out += fmt.Sprintf(", %.4g of %d", r.Together, r.Machines)
			seen[r.Machines] = true
		}
	}
	return out
}

// cellText returns text for a cell. A spreadsheet would compute what begins as a formula does; an apostrophe keeps it text.
func cellText(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// CSV writes the rows as a table with a header. Names are those of files, which may come from others.
func (c *SimulatedComparison) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	number := func(v nullable.Number) string { return v.Text("%g", "") }
	lines := [][]string{{
		"model", "problem", "n", "stand_in", "method", "scheme", "machines", "seconds", "met_seconds", "met_sweeps",
		"comparable_seconds", "efficiency", "converged", "reason", "relative_residual", "sequential_equivalent_sweeps",
		"steady_sweep_seconds", "relaxing_share", "protocol_share", "idle_share", "messages", "segments", "bytes",
		"segments_lost", "staleness_mean", "staleness", "seed", "comparable_seconds_low", "comparable_seconds_high",
		"machines_together",
	}}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Reason == ReasonRefused {
			line := make([]string, len(lines[0]))
			for column, text := range map[int]string{
				0: cellText(c.Model), 1: cellText(c.Problem), 4: cellText(r.Method), 5: cellText(r.Scheme),
				6: strconv.Itoa(r.Machines), 12: "false", 13: cellText(r.Failure),
			} {
				line[column] = text
			}
			lines = append(lines, line)
			continue
		}
		ages := strings.Trim(fmt.Sprint(r.Staleness), "[]")
		lines = append(lines, []string{
			cellText(c.Model), cellText(c.Problem), strings.Join(strings.Fields(strings.Trim(fmt.Sprint(c.N), "[]")), "x"),
			strconv.Itoa(c.StandIn), cellText(r.Method), cellText(r.Scheme), strconv.Itoa(r.Machines), fmt.Sprint(r.Seconds),
			number(r.Met), number(r.MetSweeps), number(r.Comparable), number(r.Efficiency),
			strconv.FormatBool(r.Converged), cellText(cmp.Or(r.Failure, r.Reason)), number(r.Residual), fmt.Sprint(r.Equivalent),
			number(r.Steady), fmt.Sprint(r.Relaxing), fmt.Sprint(r.Protocol), fmt.Sprint(r.Idle), fmt.Sprint(r.Messages),
			fmt.Sprint(r.Segments), fmt.Sprint(r.Bytes), fmt.Sprint(r.Lost), number(r.MeanAge), ages, fmt.Sprint(c.Seed),
			number(r.ComparableLow), number(r.ComparableHigh), number(r.Together),
		})
	}
	return out.WriteAll(lines)
}
