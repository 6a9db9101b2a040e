package cli

import (
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ofIteration reports whether the name of a problem is that of an iteration.
func (q *request) ofIteration(ref string) bool {
	b, err := q.catalog.Problems.Lookup(ref)
	return err == nil && b.Iteration
}

// buildIteration returns an iteration as a problem. The number of its unknowns is its own.
func (q *request) buildIteration(spec *file.Spec, side int) (*file.Spec, *problem.Problem, error) {
	switch flags := q.method.flags; {
	case flags != nil && flags.Changed("n"):
		return nil, nil, usage("--n %s: %s is an iteration with unknowns of its own: leave out --n", q.n, spec.Name())
	case side > 1:
		return nil, nil, usage("--stand-in %d: %s is an iteration, which has no coarser grid: leave it out", side, spec.Name())
	case flags != nil && flags.Changed("method") && q.method.Name != solver.Auto:
		return nil, nil, usage("--method %s: %s is an iteration of its own: leave out --method", q.method.Name, spec.Name())
	}
	q.method.Name = solver.Auto // compare has another default
	p, err := spec.BuildValid([]int{1})
	return spec, p, badInput(err)
}
