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
	failed  func(err error)
}
