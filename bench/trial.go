package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// trial is a run on the model of a cluster: the membrane on side³ points, each of which
// stands for standing³.
type trial struct {
	cluster  string
	machines int
	change   func(*cluster.Model) // of the described cluster; nil: none
	side     int
	standing int
	parts    [3]int // boxes along each axis; zero: those with the least surface
	scheme   iterate.Scheme
	method   problem.MethodConfig
	late     bool
	sweeps   iterate.Iteration // the run ends after so many, whatever its residual; 0: when it has converged to tolerance
	tol      float64           // 0: 1e-6
	seed     uint64
	crowd    bool // the run may have all processors; without it there is one run a processor
}

// far is a tolerance that none of these runs reaches.
const far = 1e-14

// model is the cluster of a trial.
func (t *trial) model() (*cluster.Model, error) {
	f, err := file.Open(t.cluster)
	if err != nil {
		return nil, err
	}
	m, err := f.Model(t.machines)
	if err != nil {
		return nil, err
	}
	if t.change != nil {
		t.change(m)
	}
	return m, nil
}

// play simulates it. With an error comes the result as far as the run got, if it began.
func (t *trial) play(ctx context.Context) (*simulate.Result, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	p, err := membrane(t.side)
	if err != nil {
		return nil, err
	}
	part, err := problem.Boxes(p.N, t.machines)
	if t.parts != [3]int{} {
		part, err = problem.GridOf(p.N, t.parts)
	}
	if err != nil {
		return nil, err
	}
	run := simulate.Config{
		Model: m, Scale: t.standing, NoOverlap: t.late, Sweeps: t.sweeps, Seed: t.seed + 1, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Solver: problem.Config{Problem: p, Partition: part, Scheme: t.scheme, Method: t.method, Tolerance: t.tol},
	}
	if !t.crowd {
		run.Threads = 1
	}
	switch {
	case t.sweeps > 0:
		run.Solver.Tolerance, run.Solver.CheckEvery = far, 1<<20
	case t.tol == 0:
		run.Solver.Tolerance = 1e-6
	}
	run.Evaluate = t.sweeps == 0
	r, err := simulate.Run(ctx, run)
	if err == nil && t.sweeps == 0 && r.Reason != iterate.Converged {
		err = fmt.Errorf("the run ended because it %v", r.Reason)
	}
	if err != nil {
		err = fmt.Errorf("%s, %d machines, %s: %w", t.cluster, t.machines, t.scheme.Name(), err)
	}
	return r, err
}

// each calls f(0) … f(n−1), as many at a time as there are processors, and returns the first
// error in their order. After one the others are left out.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			if errs[i] = f(ctx, i); errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// relaxations of a run, by the points of its grid.
func relaxations(r *simulate.Result) float64 {
	sum := 0.0
	for i := range r.Ranks {
		sum += r.Ranks[i].Sweeps
	}
	return sum / float64(len(r.Ranks))
}

// segments that all ranks of a run have sent.
func segments(r *simulate.Result) uint64 {
	var n uint64
	for i := range r.Ranks {
		n += r.Ranks[i].Segments
	}
	return n
}
