package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Sample is a run of the membrane on Side³ points in virtual time, on the model of a cluster.
type Sample struct {
	Cluster  string // name of a built-in description
	Machines int
	Change   func(*cluster.Model) // of the described model; nil: none
	Side     int
	Scale    int    // a grid point stands for Scale³ points in time and bytes
	Parts    [3]int // boxes along each axis; zero: those with the least surface
	Scheme   iterate.Scheme
	Method   problem.MethodConfig
	Late     bool              // faces are sent when the whole block has been relaxed
	Sweeps   iterate.Iteration // the run ends after so many; 0: when it has converged
	Seed     uint64
	// AllProcessors lets the run use all processors. Otherwise it uses one, and Each runs one
	// sample per processor.
	AllProcessors bool
}

// Unreachable is a relative residual that no sample reaches.
const Unreachable = 1e-14

// tolerance is the relative residual at which samples that converge end.
const tolerance = 1e-6

// Model returns the model of the sample's cluster.
func (s *Sample) Model() (*cluster.Model, error) {
	f, err := file.Open(s.Cluster)
	if err != nil {
		return nil, err
	}
	m, err := f.Model(s.Machines)
	if err != nil {
		return nil, err
	}
	if s.Change != nil {
		s.Change(m)
	}
	return m, nil
}

// Play simulates the sample. With an error it returns the result as far as the run got.
func (s *Sample) Play(ctx context.Context) (*simulate.Result, error) {
	m, err := s.Model()
	if err != nil {
		return nil, err
	}
	p, err := Membrane(s.Side)
	if err != nil {
		return nil, err
	}
	part, err := problem.Boxes(p.N, s.Machines)
	if s.Parts != [3]int{} {
		part, err = problem.GridOf(p.N, s.Parts)
	}
	if err != nil {
		return nil, err
	}
	run := simulate.Config{
		Model: m, Scale: s.Scale, NoOverlap: s.Late, Sweeps: s.Sweeps, Seed: s.Seed + 1, Evaluate: s.Sweeps == 0,
		Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Solver: problem.Config{Problem: p, Partition: part, Scheme: s.Scheme, Method: s.Method, Tolerance: tolerance},
	}
	if !s.AllProcessors {
		run.Threads = 1
	}
	if s.Sweeps > 0 {
		run.Solver.Tolerance, run.Solver.CheckEvery = Unreachable, 1<<20
	}
	r, err := simulate.Run(ctx, run)
	if err == nil && s.Sweeps == 0 && r.Reason != iterate.Converged {
		err = fmt.Errorf("the run ended because it %v", r.Reason)
	}
	if err != nil {
		err = fmt.Errorf("%s, %d machines, %s: %w", s.Cluster, s.Machines, s.Scheme.Name(), err)
	}
	return r, err
}

// Membrane returns the reference problem on n³ points.
func Membrane(n int) (*problem.Problem, error) {
	b, err := problems.Lookup("membrane")
	if err != nil {
		return nil, err
	}
	return b.Make([3]int{n, n, n})
}

// Segments returns how many segments all ranks of a run sent.
func Segments(r *simulate.Result) uint64 {
	var n uint64
	for i := range r.Ranks {
		n += r.Ranks[i].Segments
	}
	return n
}

// Each calls f(0) … f(n−1), as many at a time as there are processors. The first error stops the
// calls that have not begun and cancels the context of the others.
func Each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
