package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Leave asks a host to leave a run at a time since the first relaxation.
type Leave struct {
	Host int
	At   time.Duration
}

// machines returns the number of hosts that run peers at the start.
func (r *Config) machines() int {
	parts := max(1, r.Parts)
	return (r.ranks() + parts - 1) / parts
}

// used returns the number of hosts that run peers at the start or later.
func (r *Config) used() int { return r.machines() + len(r.Joins) }

// moves reports whether peers may move to other hosts.
func (r *Config) moves() bool { return r.Balance || len(r.Joins)+len(r.Leaves) > 0 }

// present reports whether a host takes part in a run at a time.
func (r *Config) present(host int, at time.Duration) bool {
	if i := host - r.machines(); i >= 0 && r.Joins[i] > at {
		return false
	}
	return !slices.ContainsFunc(r.Leaves, func(l Leave) bool { return l.Host == host && l.At <= at })
}

// checkParts refuses parts and hosts that cannot be.
func (r *Config) checkParts() error {
	switch {
	case r.Parts < 0:
		return fmt.Errorf("simulate: %d parts for each machine; there must be 1 or more, or 0 for 1", r.Parts)
	case r.machines() > len(r.Model.Hosts):
		return fmt.Errorf("simulate: %d peers for the %d machines of model %q, %d for each", r.ranks(), len(r.Model.Hosts),
			r.Model.Name, max(1, r.Parts))
	case r.used() > len(r.Model.Hosts):
		return fmt.Errorf("simulate: %d machines join the first %d, and model %q has %d", len(r.Joins), r.machines(),
			r.Model.Name, len(r.Model.Hosts))
	case r.moves() && r.Recover == nil:
		return errors.New("simulate: Balance, Joins and Leaves need Recover: parts move as after a loss")
	}
	for _, at := range r.Joins {
		if at < 0 {
			return fmt.Errorf("simulate: no machine can join at %v", at)
		}
	}
	for _, l := range r.Leaves {
		if l.Host < 0 || l.Host >= r.used() || l.At < 0 {
			return fmt.Errorf("simulate: machine %d cannot leave at %v: there are %d", l.Host, l.At, r.used())
		}
	}
	return nil
}

// place puts the ranks on their first hosts.
func (r *Config) place() {
	r.resumed.hosts = nil
	hosts := make([]int, r.ranks())
	for rank := range hosts {
		hosts[rank] = r.hostOf(rank)
	}
	r.resumed.hosts = hosts
}

// hostOf returns the host that runs the peer of a rank.
func (r *Config) hostOf(rank int) int {
	if h := r.resumed.hosts; h != nil {
		return h[rank]
	}
	return rank / max(1, r.Parts)
}

// machineOf returns the number of the machine of a rank, which it shares with all ranks of the same number.
func (r *Config) machineOf(rank int) int {
	host := r.hostOf(rank)
	if m := r.Model.Hosts[host].Machine; m > 0 {
		return m
	}
	return -1 - host
}

// paths returns the paths between the processes of the run.
func (r *Config) paths() paths { return paths{r.Model, r.resumed.hosts, r.used()} }

// host returns the host of a rank.
func (e *engine) host(rank int) *cluster.Host { return &e.model.Hosts[e.run.hostOf(rank)] }
