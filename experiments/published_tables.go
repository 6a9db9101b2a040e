package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
)

// markdown returns the table of published and predicted seconds and the errors.
func (p *prediction) markdown() string {
	var b strings.Builder
	t, m := p.whole(), published.Measured()
	b.WriteString("| machines |")
	for c := range published.Columns {
		fmt.Fprintf(&b, " %v | predicted | error |", c)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", 3*int(published.Columns)) + "\n")
	for row, machines := range published.Machines {
		fmt.Fprintf(&b, "| %d |", machines)
		for c := range published.Columns {
			cell := published.Cell{Column: c, Row: row}
			e := fmt.Sprintf("%+.1f %%", t.Error(cell))
			if slices.Contains(fittedCells(), cell) {
				e = "fitted"
			}
			fmt.Fprintf(&b, " %.0f | %.0f | %s |", m.At(cell), t.At(cell), e)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// model is a model of some columns of the published table.
type model struct {
	name    string
	table   published.Table
	columns []published.Column
	fitted  []published.Cell
}

// models returns the models from the simplest to the one of the prediction.
func (p *prediction) models(boxes *prediction) []model {
	sync := []published.Column{published.SyncIB, published.SyncEther}
	async := []published.Column{published.AsyncIB, published.AsyncEther}
	cells := fittedCells()
	return []model{
		{"share of the sequential time + points exchanged × a factor of the network, 3-D boxes",
			published.Formula(cubes), sync, cells[:2]},
		{"the same, 2-D pillars", published.Formula(pillars), sync, cells[:2]},
		{"simulated, 3-D boxes", boxes.table, sync, cells[:2]},
		{"simulated, 2-D pillars", p.table, sync, cells[:2]},
		{"share of the sequential time alone", published.Formula(pillars), async, nil},
		{"simulated: old values", p.table, async, nil},
		{"simulated, and 6/5: only synchronous runs relax planes in turn", p.whole(), async, nil},
	}
}

// modelTable returns the errors of each model by column.
func modelTable(models []model) string {
	var b strings.Builder
	b.WriteString("| model | columns | errors at 4, 8, 16, 32, 64 machines, % | largest |\n|---|---|---|---|\n")
	for _, r := range models {
		for _, c := range r.columns {
			var errs []string
			worst := 0.0
			for row := range published.Machines {
				cell := published.Cell{Column: c, Row: row}
				e := r.table.Error(cell)
				s := fmt.Sprintf("%+.1f", e)
				if slices.Contains(r.fitted, cell) {
					s = "fitted"
				}
				worst = max(worst, math.Abs(e))
				errs = append(errs, s)
			}
			fmt.Fprintf(&b, "| %s | %v | %s | %.1f |\n", r.name, c, strings.Join(errs, ", "), worst)
		}
	}
	return b.String()
}

// staleTable returns the table of ages and extra sweeps of the asynchronous runs.
func (p *prediction) staleTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| machines | network | mean age of a face, sweeps | more sweeps at %d³ | at %d³ "+
		"| extrapolated to %d³ | time of a sweep / of relaxing alone |\n", coarseSide, middleSide, published.Side)
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for row, machines := range published.Machines {
		for _, c := range []published.Column{published.AsyncIB, published.AsyncEther} {
			cell := published.Cell{Column: c, Row: row}
			network := "Eth"
			if c.IB() {
				network = "IB"
			}
			fmt.Fprintf(&b, "| %d | %s | %.2f | %.1f %% | %.1f %% | %.1f %% | %.3f |\n", machines, network, p.age.At(cell),
				100*p.coarse.At(cell), 100*p.middle.At(cell), 100*p.more.At(cell), p.slow.At(cell))
		}
	}
	return b.String()
}
