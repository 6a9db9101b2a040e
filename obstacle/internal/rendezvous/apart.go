package rendezvous

import (
	"slices"
	"strconv"
)

// Apart returns, for each peer of a run, the name of what is lost with it: its host, or its process if there is only one
// host and its processes run several peers.
func Apart(all []Member) []string {
	hosts, processes := make([]string, len(all)), make([]string, len(all))
	for i, m := range all {
		hosts[i], processes[i] = m.Host, m.Host+"/"+strconv.Itoa(m.Pid)
	}
	distinct := func(names []string) int { return len(slices.Compact(slices.Sorted(slices.Values(names)))) }
	if n := distinct(processes); distinct(hosts) == 1 && n > 1 && n < len(all) {
		return processes
	}
	return hosts
}
