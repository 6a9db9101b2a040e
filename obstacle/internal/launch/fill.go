package launch

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// leastFill is the least bound of the time to fill holes. It is the time that the run has taken if that is longer.
const leastFill = 5 * time.Second

// fill solves the problem on each hole of the answer with the surrounding values as boundary data. Adjacent holes are
// solved together. If no block arrived, starting values remain.
func (r *shell) fill(ctx context.Context, o *Outcome) {
	points := 0
	for _, b := range r.holes {
		points += b.Points()
	}
	if points == 0 || points == r.Problem.Points() {
		return
	}
	deadline := time.Now().Add(max(time.Since(r.zero), leastFill))
	var stopped atomic.Bool // an interruption is read once
	stop := func() bool {
		if ctx.Err() != nil || time.Now().After(deadline) || !r.stopping && r.interrupted() {
			stopped.Store(true)
		}
		return stopped.Load()
	}
	pool := runner.NewPool(runtime.GOMAXPROCS(0))
	for _, hole := range repair.Groups(r.holes) {
		f, ok, err := r.fillOne(hole, pool, stop)
		if errors.Is(err, errNoReturn) {
			return // its goroutine keeps the pool
		}
		if ok {
			o.Filled = append(o.Filled, f)
			r.Log.Info().Str("method", f.Method).Int("points", f.Points).Float64("residual", float64(f.Residual)).
				Msg("filled the block of a lost peer")
		}
	}
	pool.Close()
}

// errNoReturn is the error of a repair that has not ended after the request to stop.
var errNoReturn = errors.New("the code of the iteration does not return")

// stopsWithin is the time in which a repair ends after the request to stop, unless the user's code does not return.
const stopsWithin = 2 * time.Second

// solveHole is repair.Solve, whose user's code may never return: then it is left behind, some time after stop reports true.
func solveHole(h repair.Hole, stop func() bool) (repair.Repaired, error) {
	type solved struct {
		repair.Repaired
		err error
	}
	done := make(chan solved, 1)
	go func() {
		res := solved{err: errNoReturn} // as if it did not, after runtime.Goexit
		defer func() { done <- res }()
		res.Repaired, res.err = repair.Solve(h)
	}()
	for patience := stopsWithin; ; {
		select {
		case res := <-done:
			return res.Repaired, res.err
		case <-time.After(stopsWithin / 20):
			if !stop() {
				continue
			}
			if patience -= stopsWithin / 20; patience <= 0 {
				return repair.Repaired{}, errNoReturn
			}
		}
	}
}

// interrupted reports whether the user has requested the end.
func (r *shell) interrupted() bool {
	select {
	case <-r.Interrupt:
		return true
	default:
		return false
	}
}

// fillOne solves on one hole and reports whether the result is better than the starting values.
func (r *shell) fillOne(hole []problem.Box, e problem.Executor, stop func() bool) (Filled, bool, error) {
	begin := time.Now()
	p := r.Problem
	h := repair.Hole{
		Problem: p, Partition: r.Partition, Boxes: hole, New: solver.New, Executor: e, Tolerance: r.Tolerance, Stop: stop,
		Value: func(idx [3]int) (float64, bool) { return r.vector()[p.Dense(idx)], true },
	}
	if r.Initial != nil {
		h.Start = func(idx [3]int) float64 { return r.Initial[p.Dense(idx)] }
	}
	res, err := solveHole(h, stop)
	if err != nil {
		r.Log.Warn().Err(err).Msg("cannot fill the block of a lost peer")
	}
	f := Filled{
		Points: res.Points, Method: res.Method, Iterates: uint64(res.Sweeps), Residual: nullable.Number(res.Residual),
	}
	for a := range p.Dimension {
		f.Box = append(f.Box, [2]int{res.Box.Lo[a], res.Box.Hi[a]})
	}
	if res.Method == "" {
		return f, false, err
	}
	for _, b := range hole {
		blocks.Copy(r.vector(), p.N, b, res.Values(b))
	}
	f.Seconds = time.Since(begin).Seconds()
	return f, true, nil
}
