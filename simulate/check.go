package simulate

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// check refuses what cannot be played.
func (r *Config) check() error {
	switch {
	case r.Model == nil || r.Solver.Problem == nil || r.Catalog == nil || r.Policy == nil:
		return errors.New("simulate: a run needs a model, a problem, a catalog of micro-protocols and a policy")
	case r.Solver.Partition.Peers() > len(r.Model.Hosts):
		return fmt.Errorf("simulate: %d peers for the %d machines of model %q", r.Solver.Partition.Peers(), len(r.Model.Hosts), r.Model.Name)
	case r.Scale < 0:
		return fmt.Errorf("simulate: a point stands for %d points a side; it must be 1 or more", r.Scale)
	case r.SendQueue < 0 || r.ReceiveQueue < 0:
		return fmt.Errorf("simulate: a machine's queues of %d bytes to send and %d to receive", r.SendQueue, r.ReceiveQueue)
	case r.Threads < 0:
		return fmt.Errorf("simulate: %d threads to simulate with; there must be 1 or more, or 0 for as many as there are processors", r.Threads)
	case r.Until < 0:
		return fmt.Errorf("simulate: the run is to end after %v", r.Until)
	case r.Solver.Problem.Steps() > 0:
		return errors.New("simulate: problems in time steps are not simulated")
	case r.NoOverlap && r.Solver.Method.Name != "" && r.Solver.Method.Name != problem.Richardson:
		return fmt.Errorf("simulate: faces can be sent late in method %s only, not in %s", problem.Richardson, r.Solver.Method.Name)
	}
	return r.checkModel()
}

func (r *Config) checkModel() error {
	peers := r.Solver.Partition.Peers()
	sites, wide := map[int]bool{}, false
	for rank := range r.Model.Hosts[:peers] {
		h := &r.Model.Hosts[rank]
		if !(h.Relaxation > 0) || math.IsInf(h.Relaxation, 0) {
			return fmt.Errorf("simulate: machine %d (%s) relaxes %v points a second", rank, h.Class.Name, h.Relaxation)
		}
		n := &r.Model.Networks[h.Network]
		if !(n.Rate > 0) || math.IsInf(n.Rate, 0) || n.MTU < 256 {
			return fmt.Errorf("simulate: network %q carries %v bytes a second in frames of %d bytes", n.Name, n.Rate, n.MTU)
		}
		sites[h.Site] = true
		wide = wide || n.Kind == cluster.IB
	}
	if len(sites) > 1 && wide {
		return errors.New("simulate: sites with a network of kind ib are simulated one at a time: a line between them carries ether only")
	}
	for i := range r.Model.WAN {
		if w := &r.Model.WAN[i]; !(w.Rate > 0) || math.IsInf(w.Rate, 0) {
			return fmt.Errorf("simulate: the line between %v carries %v bytes a second", w.Between, w.Rate)
		}
	}
	return nil
}
