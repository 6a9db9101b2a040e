package rendezvous

import (
	"fmt"
	"slices"
)

// Apart returns a name for each peer of a run. Peers with the same name are likely to be lost together: those of one
// host or, if all are on one host and a process runs several, those of one process.
func Apart(all []Member) []string {
	hosts, processes := make([]string, len(all)), make([]string, len(all))
	for i, m := range all {
		hosts[i], processes[i] = m.Host, fmt.Sprintf("%s/%d/%d", m.Host, m.Pid, m.PidSpace)
	}
	distinct := func(names []string) int { return len(slices.Compact(slices.Sorted(slices.Values(names)))) }
	if n := distinct(processes); distinct(hosts) == 1 && n > 1 && n < len(all) {
		return processes
	}
	return hosts
}
