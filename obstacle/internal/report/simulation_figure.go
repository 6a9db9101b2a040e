package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Judge sets the verdict. The rows are compared by the time that efficiency refers to, on a stand-in by its bounds. There
// is no winner if the bounds overlap, if a row has none or is not corrected, if the rows have several methods, or if the two
// rows follow each other differently on the coarser stand-in, on the finer one or in the estimates. coarser holds the times of
// the rows on the coarser one, uncorrected the methods for whose times no correction for the full grid is known.
func (c *SimulatedComparison) Judge(coarser []nullable.Number, uncorrected []string) {
	var all, simulated []Contender
	at := map[string]int{} // of the contenders, among the rows
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Converged || !r.Comparable.Known() {
			continue
		}
		d := Contender{
			Name: c.Name(r), Peers: r.Machines, Seconds: float64(r.Comparable), Fastest: float64(r.ComparableLow),
			Slowest: float64(r.ComparableHigh), Sweeps: float64(r.MetSweeps), Idle: r.Idle, Age: float64(r.MeanAge),
			Messages: float64(r.Messages),
		}
		if c.StandIn > 1 { // the time is that of the full grid, the sweeps are not
			d.Sweeps = math.NaN()
		}
		at[fmt.Sprint(d.Name, d.Peers)] = i
		all = append(all, d)
		d.Seconds = float64(r.Met)
		d.Fastest, d.Slowest = d.Seconds, d.Seconds
		simulated = append(simulated, d)
	}
	if c.Verdict = Judge(all, 0); c.Verdict == nil || c.StandIn <= 1 {
		return
	}
	if why := c.noEstimate(c.Verdict.Peers, uncorrected); why != "" {
		if v := Judge(simulated, 0); v != nil { // an estimate and a time that was simulated are not compared
			c.Verdict = v
		}
		v := c.Verdict
		v.refuse(fmt.Sprintf("on %s, there is no estimate for the full grid, as %s: run --stand-in 1 (on stand-in %d, %s is "+
			"%.2f times as fast as %s)", plural(v.Peers, "peer"), why, c.StandIn, *v.Fastest, float64(v.Factor), *v.Against))
		v.WithinSpread, v.SpreadKnown = false, false
		return
	}
	v := c.Verdict
	w, s := fmt.Sprint(*v.Fastest, v.Peers), fmt.Sprint(*v.Against, v.Peers)
	first, second := at[w], at[s]
	switch {
	case near(c.Rows[first].Met, c.Rows[second].Met) && near(coarser[first], coarser[second]) && v.Factor < 1+equalRatio,
		v.FactorLow > 1-2*equalRatio && v.FactorHigh < 1+2*equalRatio:
		v.WithinSpread = true
		v.undecided(fmt.Sprintf("on %s, %s (%.3g s) and %s (%.3g s) differ too little for stand-ins %d and %d (factor %s): "+
			"neither is faster", plural(v.Peers, "peer"), *v.Fastest, c.Rows[first].Comparable, *v.Against,
			c.Rows[second].Comparable, c.Coarser, c.StandIn, v.factor()))
	case v.WithinSpread || !(c.Rows[first].Met < c.Rows[second].Met) || !(coarser[first] < coarser[second]):
		v.depends(fmt.Sprintf("stand-ins %d and %d leave it open: run --stand-in 1%s", c.Coarser, c.StandIn,
			map[bool]string{true: fmt.Sprintf(", or %d", c.StandIn/2)}[c.StandIn > 3 && c.StandIn%2 == 0]))
	}
}

// noEstimate returns why the times of the solved rows with so many machines cannot be compared on the full grid, "" if they
// can.
func (c *SimulatedComparison) noEstimate(machines int, uncorrected []string) string {
	var methods []string
	unbounded := false
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Converged && r.Machines == machines {
			unbounded = unbounded || !r.ComparableLow.Known()
			if !slices.Contains(methods, r.Method) {
				methods = append(methods, r.Method)
			}
		}
	}
	unknown := slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return !slices.Contains(uncorrected, m) })
	switch {
	case len(unknown) > 0:
		return "no correction is known for " + strings.Join(unknown, " and ")
	case len(methods) > 1:
		return "the sweeps of " + strings.Join(methods, " and ") + " grow by different factors"
	case unbounded && c.Coarser == 0:
		return "no coarser stand-in can be compared with"
	case unbounded:
		return "the network is full or the coarser stand-in was not solved"
	}
	return ""
}

// near reports whether two times differ by too little to name a winner.
func near(a, b nullable.Number) bool {
	return math.Abs(float64(a-b)) < equalRatio*float64(min(a, b))
}

// depends says that the stand-in decides who wins.
func (v *Verdict) depends(why string) {
	v.refuse(fmt.Sprintf("on %s, the winner depends on the stand-in (%s is estimated to be %s times as fast as %s): %s",
		plural(v.Peers, "peer"), *v.Fastest, v.factor(), *v.Against, why))
}

// draw draws the residual of every row against virtual time, with the shares of the time of its machines.
func (c *SimulatedComparison) draw(w io.Writer) {
	var rows []figure.Row
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Reason != ReasonRefused {
			rows = append(rows, figure.Row{
				Name: c.Name(r), Peers: r.Machines, Residuals: r.Residuals, Shares: []float64{r.Relaxing, r.Protocol, r.Idle},
			})
		}
	}
	figure.Draw(w, rows, "time of the machines: # relaxing, + protocol, . idle", "#+.")
}
