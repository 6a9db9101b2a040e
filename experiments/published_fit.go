package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
)

// excess returns the seconds of a measured cell beyond its share of the sequential run.
func excess(c published.Cell) float64 {
	m := published.Measured()
	return m.At(c) - share(c)
}

// share returns a machine's share of the sequential run, in seconds.
func share(c published.Cell) float64 {
	return published.Sequential / float64(published.Machines[c.Row])
}

// exchange returns the seconds of a sweep of a synchronous cell beyond relaxing. Nothing overlaps,
// so it does not depend on the speed of relaxation.
func (r *replay) exchange(ctx context.Context, c published.Cell, k calibration) (float64, error) {
	t, err := r.steady(ctx, c, k)
	if err != nil {
		return 0, err
	}
	return t.Seconds() - share(c)/k.sweeps, nil
}

// fit fits the two parameters of the synchronous columns, on one cell of each.
func (r *replay) fit(ctx context.Context) (calibration, error) {
	cells := fittedCells()
	ether, ib := cells[0], cells[1]
	k := calibration{sweeps: 1e5}
	mismatch := func(perByte float64) (off float64, err error) {
		k.byte = perByte
		e, err := r.exchange(ctx, ether, k)
		if err != nil {
			return 0, err
		}
		k.sweeps = excess(ether) / e
		i, err := r.exchange(ctx, ib, k)
		if err != nil {
			return 0, err
		}
		return math.Log(k.sweeps * i / excess(ib)), nil
	}
	described, err := r.ib.Model(1)
	if err != nil {
		return calibration{}, err
	}
	best, err := minimize(ctx, described.Hosts[0].Send.Byte, mismatch)
	if err != nil {
		return calibration{}, fmt.Errorf("published: fitting the cost of a byte: %w", err)
	}
	off, err := mismatch(best)
	if err == nil && math.Abs(off) > 0.03 {
		err = fmt.Errorf("published: no cost of a byte explains %v: the exchange is %.3g of the measured one",
			ib, math.Exp(off))
	}
	return k, err
}

// minimize returns the positive x near start at which f(x)² is smallest.
func minimize(ctx context.Context, start float64, f func(x float64) (float64, error)) (float64, error) {
	var failed error
	problem := optimize.Problem{
		Func: func(x []float64) float64 {
			if failed == nil {
				failed = ctx.Err()
			}
			if failed != nil {
				return math.Inf(1)
			}
			v, err := f(math.Exp(x[0]))
			if err != nil {
				failed = err
				return math.Inf(1)
			}
			return v * v
		},
		Status: func() (optimize.Status, error) {
			if failed != nil {
				return optimize.Failure, failed
			}
			return optimize.NotTerminated, nil
		},
	}
	set := &optimize.Settings{FuncEvaluations: 24, Converger: &optimize.FunctionConverge{Absolute: 1e-5, Iterations: 3}}
	res, err := optimize.Minimize(problem, []float64{math.Log(start)}, set, &optimize.NelderMead{SimplexSize: 0.1})
	if failed != nil {
		return 0, failed
	}
	if res == nil || len(res.X) == 0 {
		return 0, errors.Join(errors.New("there is no minimum"), err)
	}
	return math.Exp(res.X[0]), nil
}

// prediction is the whole table and the parts of the asynchronous columns.
type prediction struct {
	table  published.Table // asynchronous columns without inTurn
	k      calibration
	more   published.Table // extra sweeps at 256³ by staleness, relative
	coarse published.Table // the same on the grid of coarseSide
	middle published.Table // and of middleSide
	slow   published.Table // time of a sweep / that of relaxing alone
	age    published.Table // mean age of faces read, in sweeps
}

// predict simulates cells, the largest first, as many at a time as there are processors. It calls
// report for each cell, from any goroutine.
func (r *replay) predict(
	ctx context.Context, k calibration, cells []published.Cell, report func(c published.Cell, seconds float64),
) (*prediction, error) {
	p := &prediction{k: k}
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b published.Cell) int { return b.Row - a.Row })
	err := measure.Each(ctx, len(cells), func(ctx context.Context, i int) error {
		if err := p.add(ctx, r, cells[i]); err != nil {
			return err
		}
		report(cells[i], p.table.At(cells[i]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// add simulates a cell, an asynchronous one on two proxy grids. It writes to the entries of this cell
// only.
func (p *prediction) add(ctx context.Context, r *replay, c published.Cell) error {
	at := func(t *published.Table) *float64 { return &t[c.Column][c.Row] }
	if !c.Column.Async() {
		t, err := r.steady(ctx, c, p.k)
		*at(&p.table) = t.Seconds() * p.k.sweeps
		return err
	}
	coarse, err := r.stale(ctx, c, p.k, coarseSide)
	if err != nil {
		return err
	}
	middle, err := r.stale(ctx, c, p.k, middleSide)
	if err != nil {
		return err
	}
	samples := [2]published.Sample{{Side: coarseSide, More: coarse.more}, {Side: middleSide, More: middle.more}}
	more, err := published.MoreAt(published.Side, samples[0], samples[1])
	if err != nil {
		return err
	}
	*at(&p.more), *at(&p.age) = more, middle.age
	*at(&p.coarse), *at(&p.middle) = coarse.more, middle.more
	*at(&p.slow) = middle.sweep * p.k.sweeps / share(c)
	*at(&p.table) = middle.sweep * p.k.sweeps * (1 + more)
	return nil
}

// inTurn is the ratio of sweeps of a method that reads old values only to those of one that relaxes
// the planes in turn and reads the newest. New values come along one of three axes, so an error that
// falls by s in a sweep of the first method falls by 6s/5 in one of the second.
const inTurn = 6.0 / 5

// whole returns the predicted table.
func (p *prediction) whole() published.Table { return p.times(inTurn) }

// missing returns measured / predicted seconds of the asynchronous columns without inTurn: the smallest, the geometric
// mean and the largest.
func (p *prediction) missing() (low, mean, high float64) {
	m := published.Measured()
	low = math.Inf(1)
	sum, cells := 0.0, 0
	for _, c := range published.Cells() {
		if !c.Column.Async() {
			continue
		}
		ratio := m.At(c) / p.table.At(c)
		low, high = min(low, ratio), max(high, ratio)
		sum, cells = sum+math.Log(ratio), cells+1
	}
	return low, math.Exp(sum / float64(cells)), high
}

// times returns the table with the asynchronous columns multiplied by a factor.
func (p *prediction) times(factor float64) published.Table {
	t := p.table
	for _, c := range published.Cells() {
		if c.Column.Async() {
			t[c.Column][c.Row] *= factor
		}
	}
	return t
}
