package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/optimize"

	"github.com/p2pdc/p2pdc/bench/internal/published"
)

// excess is what a measured cell takes beyond its share of the sequential run.
func excess(c published.Cell) float64 {
	m := published.Measured()
	return m.At(c) - share(c)
}

// share is a machine's part of the sequential run, in seconds.
func share(c published.Cell) float64 {
	return published.Sequential / float64(published.Machines[c.Row])
}

// exchange is what a synchronous cell takes per sweep beyond relaxing, in seconds. Nothing is
// overlapped, so it does not depend on how fast the machines relax.
func (r *rehearsal) exchange(ctx context.Context, c published.Cell, k calibration) (float64, error) {
	t, err := r.steady(ctx, c, k)
	if err != nil {
		return 0, err
	}
	return t.Seconds() - share(c)/k.sweeps, nil
}

// fit finds the two numbers that the synchronous columns need, on one cell of each.
func (r *rehearsal) fit(ctx context.Context) (calibration, error) {
	cells := fittedCells()
	ether, ib := cells[0], cells[1]
	k := calibration{sweeps: 1e5}
	of := func(perByte float64) (off float64, err error) {
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
	best, err := minimize(ctx, described.Hosts[0].Send.Byte, of)
	if err != nil {
		return calibration{}, fmt.Errorf("published: fitting the cost of a byte: %w", err)
	}
	off, err := of(best)
	if err == nil && math.Abs(off) > 0.03 {
		err = fmt.Errorf("published: no cost of a byte explains %v: the exchange is %.3g of the measured one", ib, math.Exp(off))
	}
	return k, err
}

// minimize finds the positive x of which of is zero, or nearest to it, from a start, by the
// squares of of and the logarithm of x.
func minimize(ctx context.Context, start float64, of func(x float64) (float64, error)) (float64, error) {
	var failed error
	problem := optimize.Problem{
		Func: func(x []float64) float64 {
			if failed == nil {
				failed = ctx.Err()
			}
			if failed != nil {
				return math.Inf(1)
			}
			v, err := of(math.Exp(x[0]))
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

// prediction is the whole table, and what went into the asynchronous columns.
type prediction struct {
	table  published.Table // without the constant of a calibration's async
	k      calibration
	more   published.Table // extra sweeps at 256³ by staleness, relative
	coarse published.Table // as they were found on the grid of coarseSide
	middle published.Table // and of middleSide
	slow   published.Table // a sweep's time by the share of relaxing alone
	age    published.Table // mean age of faces read, in sweeps
}

// predict plays cells, the largest first, as many at a time as there are processors.
// Asynchronous ones are played on two coarse grids. tell hears of each cell, from any goroutine.
func (r *rehearsal) predict(ctx context.Context, k calibration, cells []published.Cell, tell func(c published.Cell, seconds float64)) (*prediction, error) {
	p := &prediction{k: k}
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b published.Cell) int { return b.Row - a.Row })
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(cells))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, c := range cells {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if errs[i] = p.play(ctx, r, c); errs[i] != nil {
				stop()
				return
			}
			tell(c, p.table.At(c))
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if last := fittedCells()[2]; p.table.At(last) > 0 {
		m := published.Measured()
		p.k.async = m.At(last) / p.table.At(last)
	}
	return p, nil
}

// play plays one cell; it writes to this cell's places only.
func (p *prediction) play(ctx context.Context, r *rehearsal, c published.Cell) error {
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
	more, err := published.MoreAt(published.Side, published.Sample{Side: coarseSide, More: coarse.more}, published.Sample{Side: middleSide, More: middle.more})
	if err != nil {
		return err
	}
	*at(&p.more), *at(&p.coarse), *at(&p.middle), *at(&p.age) = more, coarse.more, middle.more, middle.age
	*at(&p.slow) = middle.sweep * p.k.sweeps / share(c)
	*at(&p.table) = middle.sweep * p.k.sweeps * (1 + more)
	return nil
}

// inTurn is how many sweeps of a method that reads old values alone one takes that relaxes the
// planes in turn and reads the newest: only one of three axes sees new values, so an error that
// dies out by s a sweep in the first dies out by 6s/5 in the second.
const inTurn = 6.0 / 5

// whole is the table with the relaxations that staleness does not explain.
func (p *prediction) whole() published.Table { return p.times(p.k.async) }

// times is the table with that many times the relaxations out of lockstep.
func (p *prediction) times(factor float64) published.Table {
	t := p.table
	for _, c := range published.Cells() {
		if c.Column.Async() {
			t[c.Column][c.Row] *= factor
		}
	}
	return t
}
