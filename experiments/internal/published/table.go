// Package published has the measurements of the 2013 paper (Tembo, Nguyen, El Baz, PDP 2013, doi
// 10.1109/PDP.2013.25) and evaluates predictions of them.
package published

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// Points a side of the grid, and the seconds of one machine.
const (
	Side       = 256
	Sequential = 9523.0
)

// Points of the grid.
const Points = Side * Side * Side

// Machines has the number of machines of each row.
var Machines = [...]int{4, 8, 16, 32, 64}

// Column is a column of the table.
type Column int

// The columns, in the paper's order.
const (
	SyncIB Column = iota
	SyncEther
	AsyncIB
	AsyncEther
	Columns
)

func (c Column) String() string {
	return [...]string{"sync IB", "sync Eth", "async IB", "async Eth"}[c]
}

// Curve returns the name of the column in figure 5 of the paper.
func (c Column) Curve() string { return [...]string{"synIBA", "synETH", "asynIBA", "asynETH"}[c] }

// Async reports whether the column has the asynchronous scheme.
func (c Column) Async() bool { return c >= AsyncIB }

// IB reports whether the column has the InfiniBand network.
func (c Column) IB() bool { return c == SyncIB || c == AsyncIB }

// Cell is one of the 20 cells; Row is an index into Machines.
type Cell struct {
	Column Column
	Row    int
}

func (c Cell) String() string { return fmt.Sprintf("%v, %d machines", c.Column, Machines[c.Row]) }

// Table has seconds by column and row.
type Table [Columns][len(Machines)]float64

// Measured returns the table of the paper.
func Measured() Table {
	return Table{
		SyncIB:     {2543, 1399, 770, 437, 247},
		SyncEther:  {2862, 1794, 1118, 711, 448},
		AsyncIB:    {2749, 1410, 710, 360, 180},
		AsyncEther: {2794, 1420, 733, 376, 192},
	}
}

// At returns the value of a cell.
func (t *Table) At(c Cell) float64 { return t[c.Column][c.Row] }

// Error returns predicted / measured − 1 of a cell, in percent.
func (t *Table) Error(c Cell) float64 {
	m := Measured()
	return 100 * (t.At(c)/m.At(c) - 1)
}

// Efficiency returns the speedup of m machines divided by m.
func Efficiency(m int, seconds float64) float64 { return Sequential / (float64(m) * seconds) }

// Cells returns all cells by column and row.
func Cells() []Cell {
	var out []Cell
	for c := range Columns {
		for r := range Machines {
			out = append(out, Cell{c, r})
		}
	}
	return out
}

// apart is the ratio of two measured columns above which a prediction must have their order.
const apart = 1.05

// Verdict is the evaluation of a prediction. Errors are absolute values in percent.
type Verdict struct {
	Worst  float64
	At     Cell
	Median float64  // of all cells except the fitted ones
	Cells  int      // number of these cells
	Pairs  int      // of columns more than 5 % apart in a row
	Wrong  []string // pairs in the wrong order
}

// Evaluate compares a table with the measured one. Fitted cells do not count as predicted, but their
// order does. Values must be positive and finite.
func Evaluate(t Table, fitted ...Cell) (Verdict, error) {
	var v Verdict
	var errs []float64
	m := Measured()
	for _, c := range Cells() {
		if x := t.At(c); !(x > 0) || math.IsInf(x, 1) {
			return Verdict{}, fmt.Errorf("published: predicted %v s for %v; want a positive finite number", x, c)
		}
		if slices.Contains(fitted, c) {
			continue
		}
		e := math.Abs(t.Error(c))
		errs = append(errs, e)
		if e > v.Worst {
			v.Worst, v.At = e, c
		}
	}
	for r := range Machines {
		for a := range Columns {
			for b := range Columns {
				if m[a][r] <= apart*m[b][r] {
					continue
				}
				v.Pairs++
				if t[a][r] <= t[b][r] {
					wrong := fmt.Sprintf("%d machines: %v is slower than %v, and predicted faster", Machines[r], a, b)
					v.Wrong = append(v.Wrong, wrong)
				}
			}
		}
	}
	if v.Cells = len(errs); v.Cells > 0 {
		v.Median = measure.Median(errs)
	}
	return v, nil
}
