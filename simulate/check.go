package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ranks returns the number of peers.
func (r *Config) ranks() int {
	if r.New != nil {
		return r.Peers
	}
	return r.Solver.Partition.Peers()
}

// complete fills in defaults and refuses what cannot be simulated.
func (r *Config) complete() error {
	if r.Catalog == nil {
		r.Catalog = ctp.Catalog()
	}
	if r.Policy == nil {
		r.Policy = p2psap.TablePolicy{}
	}
	switch {
	case r.Model == nil:
		return errors.New("simulate: a run needs a model of a cluster (Config.Model)")
	case r.New == nil && r.Solver.Problem == nil:
		return errors.New("simulate: a run needs a problem (Config.Solver) or peers (Config.New)")
	case r.New != nil && r.Peers < 1:
		return fmt.Errorf("simulate: %d peers; Config.New needs 1 or more in Config.Peers", r.Peers)
	case r.Scale < 0:
		return fmt.Errorf("simulate: a point stands for %d points along each axis; it must be 1 or more", r.Scale)
	case r.SendQueue < 0 || r.ReceiveQueue < 0:
		return fmt.Errorf("simulate: queues of %d bytes to send and %d to receive; a negative size is none",
			r.SendQueue, r.ReceiveQueue)
	case r.Threads < 0:
		return fmt.Errorf("simulate: %d threads; there must be 1 or more, or 0 for as many as there are processors",
			r.Threads)
	case r.Until < 0:
		return fmt.Errorf("simulate: a run cannot end after %v", r.Until)
	case r.New != nil && (r.Scale > 1 || r.Evaluate || r.NoOverlap):
		return errors.New("simulate: Scale, Evaluate and NoOverlap apply to Config.Solver, not to peers of Config.New")
	}
	if err := r.checkParts(); err != nil {
		return err
	}
	if r.New == nil {
		if err := r.checkSolver(); err != nil {
			return err
		}
	}
	if err := r.checkRecovery(); err != nil {
		return err
	}
	return r.checkModel()
}

func (r *Config) checkSolver() error {
	method := cmp.Or(r.Solver.Method.Name, problem.Richardson)
	switch {
	case r.Solver.After > 0:
		return errors.New("simulate: a run begins with the first time step; Solver.After must be 0")
	case r.NoOverlap && method != problem.Richardson:
		return fmt.Errorf("simulate: faces can be sent late in method %s only, not in %s", problem.Richardson, method)
	}
	return nil
}

func (r *Config) checkModel() error {
	sites, ib := map[int]bool{}, false
	for i := range r.Model.Hosts[:r.used()] {
		h := &r.Model.Hosts[i]
		if !(h.Relaxation > 0) || math.IsInf(h.Relaxation, 0) {
			return fmt.Errorf("simulate: machine %d (%s) relaxes %v points a second", i, h.Class.Name, h.Relaxation)
		}
		n := &r.Model.Networks[h.Network]
		if !(n.Rate > 0) || math.IsInf(n.Rate, 0) || n.MTU < 256 {
			return fmt.Errorf("simulate: network %q carries %v bytes a second in frames of %d bytes", n.Name, n.Rate, n.MTU)
		}
		sites[h.Site] = true
		ib = ib || n.Kind == cluster.IB
	}
	if len(sites) > 1 && ib {
		return errors.New("simulate: a site with a network of kind ib is simulated alone: WAN links carry ether only")
	}
	for i := range r.Model.WAN {
		if w := &r.Model.WAN[i]; !(w.Rate > 0) || math.IsInf(w.Rate, 0) {
			return fmt.Errorf("simulate: the link between %v carries %v bytes a second", w.Between, w.Rate)
		}
	}
	return nil
}
