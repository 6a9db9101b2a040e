package cli

import (
	"io"
	"math"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// idleShare returns the share of the processor time of the peers' threads that they did not use. Waiting threads that
// poll use it. It is unknown if peers share a process.
func idleShare(s *report.Solution) nullable.Number {
	had, used := 0.0, 0.0
	for _, p := range s.PerPeer {
		had += float64(p.Seconds) * float64(s.Threads)
		used += float64(p.CPUSeconds)
	}
	if !(had > 0) || !(used > 0) || s.InProcess && s.Peers > 1 {
		return nullable.NaN()
	}
	return nullable.Number(min(max(1-used/had, 0), 1))
}

// contenders returns the solved rows for a verdict.
func contenders(rows []row, methods bool) []report.Contender {
	var out []report.Contender
	for i := range rows {
		r := &rows[i]
		if r.Why != "" {
			continue
		}
		out = append(out, report.Contender{
			Name: r.name(methods), Peers: r.Peers, Seconds: float64(r.Seconds), Fastest: float64(r.Fastest),
			Slowest: float64(r.Slowest), Sweeps: float64(r.Equivalent), Idle: float64(r.Idle), Age: math.NaN(),
			Messages: float64(*r.Messages),
		})
	}
	return out
}

func (r *row) name(methods bool) string {
	if methods {
		return r.Method + ", " + r.Scheme
	}
	return r.Scheme
}

// draw draws the residual of every solved row against time, with the time that its peers were idle.
func (c *comparison) draw(w io.Writer) {
	var rows []figure.Row
	methods := strings.Contains(c.Method, ",")
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Why != "" {
			continue
		}
		row := figure.Row{Name: r.name(methods), Peers: r.Peers, Residuals: r.residuals}
		if r.Idle.Known() {
			row.Shares = []float64{1 - float64(r.Idle), float64(r.Idle)}
		}
		rows = append(rows, row)
	}
	figure.Draw(w, rows, "processor time: # used, . idle", "#.")
}
