package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/bench/internal/published"
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

// calibration is what is not published and has to be fitted. Each number is fitted on one
// cell, all of them at 64 machines.
type calibration struct {
	sweeps float64 // N: of the sequential and the synchronous runs; on sync Eth
	byte   float64 // nanoseconds of the protocol's processor, per byte and end; on sync IB
	async  float64 // relaxations of an asynchronous run by those of a synchronous one, beyond what staleness explains; on async IB
}

// fitted are the cells of a calibration: sweeps, byte, async.
func fittedCells() []published.Cell {
	last := len(published.Machines) - 1
	return []published.Cell{{Column: published.SyncEther, Row: last}, {Column: published.SyncIB, Row: last}, {Column: published.AsyncIB, Row: last}}
}

// A cut is how a domain of so many machines is cut into boxes.
type cut func(machines int) [3]int

// pillars cuts along x and y, as evenly as powers of two go: every plane z is cut by all machines.
func pillars(machines int) [3]int {
	k := int(math.Round(math.Log2(float64(machines))))
	return [3]int{1 << ((k + 1) / 2), 1 << (k / 2), 1}
}

// cubes cuts along all three axes, the slower ones first.
func cubes(machines int) [3]int {
	k := int(math.Round(math.Log2(float64(machines))))
	return [3]int{1 << (k / 3), 1 << ((k + 1) / 3), 1 << ((k + 2) / 3)}
}

// rehearsal plays the published runs on the described clusters.
type rehearsal struct {
	ether, ib *file.File
	cut       cut
	from, to  iterate.Iteration // between them an asynchronous cell is looked at
}

func newRehearsal(c cut) (*rehearsal, error) {
	ether, err := file.Open("graphene-eth")
	if err != nil {
		return nil, err
	}
	ib, err := file.Open("graphene-ib")
	if err != nil {
		return nil, err
	}
	return &rehearsal{ether: ether, ib: ib, cut: c, from: 100, to: 200}, nil
}

// model is the described cluster with a calibration instead of the description's own.
func (r *rehearsal) model(col published.Column, machines int, k calibration) (*cluster.Model, error) {
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

// play runs so many sweeps of a cell on a grid of side points a side that stands for the published one.
func (r *rehearsal) play(ctx context.Context, c published.Cell, k calibration, side int, sweeps iterate.Iteration) (*simulate.Result, error) {
	machines := published.Machines[c.Row]
	m, err := r.model(c.Column, machines, k)
	if err != nil {
		return nil, err
	}
	p, err := membrane(side)
	if err != nil {
		return nil, err
	}
	part, err := problem.GridOf(p.N, r.cut(machines))
	if err != nil {
		return nil, err
	}
	run := simulate.Config{
		Model: m, Scale: published.Side / side, NoOverlap: !c.Column.Async(), Sweeps: sweeps, Seed: 1, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Solver: problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: unreachable},
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

// unreachable is a tolerance that no run of these reaches: it ends after its sweeps.
const unreachable = 1e-14

// Grids of the stand-ins, and sweeps that are played of a cell.
const (
	coarseSide, middleSide = 32, 64
	steadySweeps           = 12
)

// steady is what a sweep of a synchronous cell takes.
func (r *rehearsal) steady(ctx context.Context, c published.Cell, k calibration) (time.Duration, error) {
	res, err := r.play(ctx, c, k, coarseSide, steadySweeps)
	if err != nil {
		return 0, err
	}
	return res.Steady, nil
}

// stale is what an asynchronous cell shows on a coarse grid, once its start is behind it.
type stale struct {
	sweep float64 // seconds that a peer's sweep takes, on average
	more  float64 // sweeps by those of the synchronous run whose residual falls as much, less 1
	age   float64 // mean age of a face when it is read, in sweeps
}

// stale plays a cell twice: as far as from and as to. The second run repeats the first
// and goes on, so what is between them is without the start.
func (r *rehearsal) stale(ctx context.Context, c published.Cell, k calibration, side int) (stale, error) {
	var sweeps, same, seconds [2]float64
	var s stale
	for i, n := range []iterate.Iteration{r.from, r.to} {
		res, err := r.play(ctx, c, k, side, n)
		if err != nil {
			return stale{}, err
		}
		for _, rank := range res.Ranks {
			sweeps[i] += rank.Sweeps / float64(len(res.Ranks))
		}
		if same[i], err = equivalent(side, res.Residual); err != nil {
			return stale{}, err
		}
		seconds[i], s.age = res.Virtual.Seconds(), meanAge(res.Staleness[:])
	}
	s.sweep = (seconds[1] - seconds[0]) / (sweeps[1] - sweeps[0])
	s.more = (sweeps[1]-sweeps[0])/(same[1]-same[0]) - 1
	return s, nil
}

// meanAge of a histogram by age.
func meanAge(byAge []uint64) float64 {
	sum, n := 0.0, 0.0
	for age, faces := range byAge {
		sum += float64(age) * float64(faces)
		n += float64(faces)
	}
	return sum / max(n, 1)
}

// equivalent is after how many sweeps, a broken number, the sequential method has a residual.
func equivalent(side int, residual float64) (float64, error) {
	if !(residual > 0 && residual < 1) {
		return 0, fmt.Errorf("published: a relative residual of %v on %d points a side", residual, side)
	}
	p, err := membrane(side)
	if err != nil {
		return 0, err
	}
	after, err := richardson.SolveSequential(p, problem.Jacobi, residual, 1, 1, 0)
	if err != nil {
		return 0, err
	}
	// The run ends a sweep after the one that was judged.
	var at [2]float64
	for i := range at {
		s, err := richardson.SolveSequential(p, problem.Jacobi, unreachable, 1, 1, after.Sweeps-2+iterate.Iteration(i))
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
