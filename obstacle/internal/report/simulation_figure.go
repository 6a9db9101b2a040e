package report

import (
	"fmt"
	"io"
	"math"

	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
)

// Judge sets the verdict. The rows are compared by the time that efficiency refers to.
func (c *SimulatedComparison) Judge() {
	var all []Contender
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Converged || !r.Comparable.Known() {
			continue
		}
		t := float64(r.Comparable)
		d := Contender{
			Name: c.Name(r), Peers: r.Machines, Seconds: t, Fastest: t, Slowest: t, Sweeps: float64(r.MetSweeps),
			Idle: r.Idle, Age: float64(r.MeanAge), Messages: float64(r.Messages),
		}
		if c.Costing > 1 { // the time is corrected, the sweeps are not
			d.Sweeps = math.NaN()
		}
		all = append(all, d)
	}
	c.Verdict = Judge(all, 0)
}

// Columns of the figures in text.
const (
	lineWidth = 40
	barWidth  = 20
)

// draw draws the residual of every row against virtual time, on one axis, with the shares of the time of its machines.
func (c *SimulatedComparison) draw(w io.Writer) {
	var all [][]figure.Sample
	for _, r := range c.Rows {
		all = append(all, r.Residuals)
	}
	until, low, high := figure.Range(all...)
	if !(until > 0) || !(high > low) {
		return
	}
	fmt.Fprintf(w, "residual, %.1g to %.1g, in 0 to %.3g s; time of the machines: # relaxing, + protocol, . idle\n",
		high, low, until)
	t := Tabs(w)
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Reason != ReasonRefused {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", c.Name(r), r.Machines,
				figure.Sparkline(r.Residuals, until, lineWidth, low, high),
				figure.Bar(barWidth, []float64{r.Relaxing, r.Protocol, r.Idle}, "#+."))
		}
	}
	t.Flush()
}
