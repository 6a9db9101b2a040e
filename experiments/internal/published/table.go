// Package published holds the measurements of the 2013 paper (Tembo, Nguyen, El Baz, PDP
// 2013, doi 10.1109/PDP.2013.25) and judges predictions of them. It predicts nothing.
package published

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Points a side of the grid, and the seconds of one machine.
const (
	Side       = 256
	Sequential = 9523.0
)

// Points of the grid.
const Points = Side * Side * Side

// Machines of the table's rows.
var Machines = [...]int{4, 8, 16, 32, 64}

// Column of the table.
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

// Curve is the column's name in the paper's figure 5.
func (c Column) Curve() string { return [...]string{"synIBA", "synETH", "asynIBA", "asynETH"}[c] }

// Async tells whether the column is of the asynchronous scheme.
func (c Column) Async() bool { return c >= AsyncIB }

// IB tells whether it is of the InfiniBand network.
func (c Column) IB() bool { return c == SyncIB || c == AsyncIB }

// Cell is one of the twenty, Row an index into Machines.
type Cell struct {
	Column Column
	Row    int
}

func (c Cell) String() string { return fmt.Sprintf("%v, %d machines", c.Column, Machines[c.Row]) }

// Table is seconds by column and row.
type Table [Columns][len(Machines)]float64

// Measured is the paper's table.
func Measured() Table {
	return Table{
		SyncIB:     {2543, 1399, 770, 437, 247},
		SyncEther:  {2862, 1794, 1118, 711, 448},
		AsyncIB:    {2749, 1410, 710, 360, 180},
		AsyncEther: {2794, 1420, 733, 376, 192},
	}
}

// At is the value of a cell.
func (t *Table) At(c Cell) float64 { return t[c.Column][c.Row] }

// Error of a cell: predicted / measured − 1, in percent.
func (t *Table) Error(c Cell) float64 {
	m := Measured()
	return 100 * (t.At(c)/m.At(c) - 1)
}

// Efficiency is what m machines make of m times the speed of one, as a part of 1.
func Efficiency(m int, seconds float64) float64 { return Sequential / (float64(m) * seconds) }

// Cells are all twenty, by column and row.
func Cells() []Cell {
	var out []Cell
	for c := range Columns {
		for r := range Machines {
			out = append(out, Cell{c, r})
		}
	}
	return out
}

// apart is the least ratio of two measured columns whose order a prediction has to have.
const apart = 1.05

// Verdict on a prediction. Errors are absolute values in percent.
type Verdict struct {
	Worst  float64
	At     Cell
	Median float64 // of all cells but those that were fitted
	Cells  int     // of them
	Pairs  int     // of columns more than 5 % apart, in one row
	Wrong  []string
}

// Judge compares a table with the measured one; cells that were fitted do not count as
// predicted, but their order does. A value that is not a positive number is an error that
// names its cell.
func Judge(t Table, fitted ...Cell) (Verdict, error) {
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
		slices.Sort(errs)
		v.Median = median(errs)
	}
	return v, nil
}

// median of sorted values: of an even number of them the middle between two.
func median(sorted []float64) float64 {
	n := len(sorted)
	return stat.Mean([]float64{sorted[(n-1)/2], sorted[n/2]}, nil)
}
