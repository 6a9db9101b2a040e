package simulate

import "github.com/p2pdc/p2pdc/simulate/cluster"

// machines returns the number of hosts that run peers at the start.
func (r *Config) machines() int {
	parts := max(1, r.Parts)
	return (r.ranks() + parts - 1) / parts
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
func (r *Config) paths() paths { return paths{r.Model, r.resumed.hosts, r.machines()} }

// host returns the host of a rank.
func (e *engine) host(rank int) *cluster.Host { return &e.model.Hosts[e.run.hostOf(rank)] }
