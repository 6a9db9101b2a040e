package report

import (
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
