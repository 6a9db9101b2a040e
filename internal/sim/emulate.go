package sim

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// emulate runs the partition on one machine: no transport, every message arrives
// at once and in order, the workers take turns. In the order in-turn it is the
// oracle of synchronous runs, since there the answer depends on the partition.
func (s *Scenario) emulate() (richardson.Sequence, error) {
	workers := make([]problem.Peer, s.Peers())
	for r := range workers {
		c := s.config(iterate.Rank(r), nil)
		c.Scheme = iterate.Synchronous()
		w, err := solver.New(c)
		if err != nil {
			return richardson.Sequence{}, err
		}
		workers[r] = w
	}
	for done := 0; done < len(workers); {
		done = 0
		moved := false
		for r, w := range workers {
			ended, m, err := turn(workers, iterate.Rank(r), w)
			if err != nil {
				return richardson.Sequence{}, err
			}
			if ended {
				done++
			}
			moved = moved || m
		}
		if !moved && done < len(workers) {
			return richardson.Sequence{}, fmt.Errorf("sim: the emulation of %v is stuck", s.Partition.Cuts)
		}
	}
	out := richardson.Sequence{U: make([]float64, s.Problem.Points())}
	for _, w := range workers {
		v := make([]float64, w.Box().Points())
		w.Solution(v)
		virtual.Place(out.U, s.Problem.N, w.Box(), v)
	}
	o := workers[0].Outcome()
	out.Sweeps, out.Residual, out.Reason = o.Sweeps, o.Residual, o.Reason
	return out, nil
}

// turn lets one worker go on until it waits or has ended.
func turn(workers []problem.Peer, r iterate.Rank, w problem.Peer) (ended, moved bool, err error) {
	for {
		op := w.Next(0)
		switch op.Kind {
		case iterate.OpDone:
			return true, moved, nil
		case iterate.OpWait:
			return false, moved, nil
		case iterate.OpRelax:
			w.Relax(op)
		case iterate.OpSend:
			buf := make([]byte, op.Bytes)
			w.Pack(op, buf)
			err = workers[op.To].Halo(0, r, op.Tag, op.Label, buf)
		case iterate.OpAgree:
			err = workers[op.To].Agree(0, r, op.Message)
		}
		if err != nil {
			return false, moved, err
		}
		moved = true
	}
}
