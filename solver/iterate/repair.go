package iterate

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Halo returns the values of a block that another peer reads, in the order of Neighbour.Send. x holds the values of the
// block. The result is empty for a peer that reads none.
func Halo(b Block, to Rank, x []float64) (values []float64) {
	for _, q := range b.Neighbours() {
		if q.Rank != to {
			continue
		}
		for _, at := range q.Send {
			values = append(values, x[at])
		}
	}
	return values
}

// Repair computes the values of a block whose peer was lost from the values around it. It relaxes the block, from its
// starting values, with fixed ghosts, until ‖x − F(x)‖₂ of the block is at most tolerance times that of the starting values,
// it has made that many sweeps, or stop, if it is not nil, reports true. halos has the Halo of every neighbour of which the block
// reads values, by rank. For a neighbour that was lost as well, pass the halo of its starting values, or of its values if it
// was repaired before. residual is the last ‖x − F(x)‖₂ relative to that of the starting values.
//
// If F is a contraction in a weighted maximum norm, the weighted error of the result is at most that of the halos or,
// after too few sweeps, of the starting values: the loss does not raise the error of the run. Otherwise Repair may
// diverge; then it returns an error.
func Repair(b Block, halos map[Rank][]float64, tolerance float64, most Iteration, stop func() bool) (
	x []float64, sweeps Iteration, residual float64, err error,
) {
	defer caught(&err)
	b = guarded{b, unranked}
	ghosts, err := ghostsOf(b, halos)
	if err != nil {
		return nil, 0, math.NaN(), err
	}
	x, next := make([]float64, b.Values()), make([]float64, b.Values())
	b.Start(x)
	reference := math.NaN()
	for residual = 1; sweeps < most && (stop == nil || !stop()); {
		b.Relax(next, x, ghosts)
		squares := distance(x, next)
		norm := Norm(&squares)
		if sweeps == 0 {
			reference = norm
		}
		x, next = next, x
		sweeps++
		switch residual = Relative(norm, reference); {
		case !kernel.Finite(norm):
			return nil, sweeps, residual, fmt.Errorf(
				"iterate: the block diverges with fixed ghosts: ‖x − F(x)‖₂ is %v after %d sweeps", norm, sweeps)
		case residual <= tolerance:
			return x, sweeps, residual, nil
		}
	}
	return x, sweeps, residual, nil
}

// ghostsOf returns the ghosts of a block for the halos of its neighbours.
func ghostsOf(b Block, halos map[Rank][]float64) (ghosts []float64, err error) {
	for _, q := range b.Neighbours() {
		halo := halos[q.Rank]
		if len(halo) != len(q.Receive) {
			return nil, fmt.Errorf("iterate: a halo of %d values from rank %d; the block reads %d",
				len(halo), q.Rank, len(q.Receive))
		}
		for i, at := range q.Receive {
			if !kernel.Finite(halo[i]) {
				return nil, fmt.Errorf("iterate: value %d of the halo from rank %d is %v; it must be finite", i, q.Rank, halo[i])
			}
			if more := at + 1 - len(ghosts); more > 0 {
				ghosts = append(ghosts, make([]float64, more)...)
			}
			ghosts[at] = halo[i]
		}
	}
	return ghosts, nil
}

// StartFrom returns a block like b with other starting values: those of x, which it keeps. A run goes on with them
// after the loss of a peer. Relative residuals then refer to the residual of these values, unless Config.Reference
// returns something else; a peer of FixedPoint.NewPeer has those of its iteration.
func StartFrom(b Block, x []float64) Block { return startFrom{b, x} }

type startFrom struct {
	Block
	x []float64
}

// Start writes x.
func (s startFrom) Start(x []float64) { copy(x, s.x) }
