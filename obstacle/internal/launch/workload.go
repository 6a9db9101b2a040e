package launch

import (
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// workload is an assignment with what follows it in chunks.
type workload struct {
	assign  rendezvous.Assign
	problem []byte      // nil: the peer has it
	n       [3]int      // points of the grid per axis
	box     problem.Box // of the peer
	initial []float64   // of the whole grid; nil: none
	newest  bool        // initial is the end of the newest time step
	block   []float64   // of the peer's box, instead of initial
	around  []float64   // of assign.Repair
}

// assignment returns what the work of all peers in an epoch has in common, and how much a peer is slowed down.
func (r *run) assignment(m *member, members []rendezvous.Member, problemBytes int64) rendezvous.Assign {
	a := rendezvous.Assign{
		Epoch: r.epoch, Members: members, ProblemBytes: problemBytes, Cuts: r.Partition.Cuts,
		MaxSweeps: r.MaxSweeps, MaxTime: r.MaxTime,
	}
	factor := r.Slowdown[m.rank]
	if r.Parts > 1 {
		factor = r.slow[processOf(m)]
	}
	a.Slowdown = max(1, factor)
	return a
}
