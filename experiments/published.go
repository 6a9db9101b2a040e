package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// calibration has the parameters that are not published. Each is fitted on one cell with 64 machines.
type calibration struct {
	sweeps float64 // N of the sequential and synchronous runs; on sync Eth
	byte   float64 // processor time of the protocol, nanoseconds per byte and end; on sync IB
}

// fittedCells returns the cells on which sweeps and byte are fitted, one of each network.
func fittedCells() []published.Cell {
	last := len(published.Machines) - 1
	return []published.Cell{{Column: published.SyncEther, Row: last}, {Column: published.SyncIB, Row: last}}
}

// A cut returns the number of boxes along each axis for a number of machines.
type cut func(machines int) [3]int

// pillars cuts along x and y, as evenly as powers of two allow.
func pillars(machines int) [3]int {
	k := int(math.Round(math.Log2(float64(machines))))
	return [3]int{1 << ((k + 1) / 2), 1 << (k / 2), 1}
}

// cubes cuts along all three axes, along z first.
func cubes(machines int) [3]int {
	k := int(math.Round(math.Log2(float64(machines))))
	return [3]int{1 << (k / 3), 1 << ((k + 1) / 3), 1 << ((k + 2) / 3)}
}

// replay simulates the published runs on the described clusters.
type replay struct {
	ether, ib *file.File
	cut       cut
	from, to  iterate.Iteration // sweeps between which an asynchronous cell is measured
}

func newReplay(c cut) (*replay, error) {
	ether, err := file.Open("graphene-eth")
	if err != nil {
		return nil, err
	}
	ib, err := file.Open("graphene-ib")
	if err != nil {
		return nil, err
	}
	return &replay{ether: ether, ib: ib, cut: c, from: 100, to: 200}, nil
}

// model returns the described cluster with the parameters of a calibration.
func (r *replay) model(col published.Column, machines int, k calibration) (*cluster.Model, error) {
	f := r.ether
	if col.IB() {
		f = r.ib
	}
	m, err := f.Model(machines)
	if err != nil {
		return nil, err
	}
	for i := range m.Hosts {
		h := &m.Hosts[i]
		h.Relaxation = published.Points * k.sweeps / published.Sequential
		h.Send.Byte, h.Receive.Byte = k.byte, k.byte
	}
	return m, nil
}

// simulate runs so many sweeps of a cell on a proxy grid of side³ points.
func (r *replay) simulate(
	ctx context.Context, c published.Cell, k calibration, side int, sweeps iterate.Iteration,
) (*simulate.Result, error) {
	machines := published.Machines[c.Row]
	m, err := r.model(c.Column, machines, k)
	if err != nil {
		return nil, err
	}
	p, err := measure.Membrane(side)
	if err != nil {
		return nil, err
	}
	part, err := problem.GridOf(p.N, r.cut(machines))
	if err != nil {
		return nil, err
	}
	run := simulate.Config{
		Model: m, Scale: published.Side / side, NoOverlap: !c.Column.Async(), Sweeps: sweeps, Seed: 1,
		Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Monitor: p2psap.MonitorConfig{Off: true}, // the published rules follow no loss
		Solver:  problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: measure.Unreachable},
	}
	if c.Column.Async() {
		run.Solver.Scheme = iterate.Asynchronous()
	}
	res, err := simulate.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", c, err)
	}
	return res, nil
}

// Sides of the proxy grids, and the sweeps that are simulated of a synchronous cell.
const (
	coarseSide, middleSide = 32, 64
	cellSweeps             = 12
)

// steady returns the time of a sweep of a synchronous cell.
func (r *replay) steady(ctx context.Context, c published.Cell, k calibration) (time.Duration, error) {
	res, err := r.simulate(ctx, c, k, coarseSide, cellSweeps)
	if err != nil {
		return 0, err
	}
	return res.Steady, nil
}

// staleness is what old values cost an asynchronous cell on a proxy grid, in the steady state.
type staleness struct {
	sweep float64 // mean time of a peer's sweep, seconds
	more  float64 // sweeps / those of the synchronous run with the same fall of the residual, less 1
	age   float64 // mean age of a face when it is read, sweeps
}

// stale simulates the first r.from sweeps of a cell, then the first r.to. The difference between the
// runs leaves out the start.
func (r *replay) stale(ctx context.Context, c published.Cell, k calibration, side int) (staleness, error) {
	var sweeps, same, seconds [2]float64
	var s staleness
	for i, n := range []iterate.Iteration{r.from, r.to} {
		res, err := r.simulate(ctx, c, k, side, n)
		if err != nil {
			return staleness{}, err
		}
		sweeps[i] = res.Sweeps()
		if same[i], err = equivalent(side, res.Residual); err != nil {
			return staleness{}, err
		}
		seconds[i], s.age = res.Virtual.Seconds(), res.MeanAge()
	}
	s.sweep = (seconds[1] - seconds[0]) / (sweeps[1] - sweeps[0])
	s.more = (sweeps[1]-sweeps[0])/(same[1]-same[0]) - 1
	return s, nil
}

// equivalent returns the number of sweeps, with a fraction, after which the sequential method
// reaches a residual.
func equivalent(side int, residual float64) (float64, error) {
	if !(residual > 0 && residual < 1) {
		return 0, fmt.Errorf("published: a relative residual of %v on %d points a side", residual, side)
	}
	p, err := measure.Membrane(side)
	if err != nil {
		return 0, err
	}
	after, err := richardson.SolveSequential(p, problem.Jacobi, residual, 1, 1, 0)
	if err != nil {
		return 0, err
	}
	// The run ended a sweep after the one whose residual it measured.
	var at [2]float64
	for i := range at {
		sweeps := after.Sweeps - 2 + iterate.Iteration(i)
		s, err := richardson.SolveSequential(p, problem.Jacobi, measure.Unreachable, 1, 1, sweeps)
		if err != nil {
			return 0, err
		}
		e, err := verify.Evaluate(p, s.U, nil)
		if err != nil {
			return 0, err
		}
		at[i] = math.Log(e.RelativeResidual)
	}
	if !(at[1] < at[0]) {
		return 0, fmt.Errorf("published: the residual does not fall after %d sweeps on %d points a side", after.Sweeps, side)
	}
	return float64(after.Sweeps-2) + (at[0]-math.Log(residual))/(at[0]-at[1]), nil
}
