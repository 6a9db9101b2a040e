package peer

import (
	"runtime"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// crowded tells whether the peers of this machine have more threads than it has
// processors. Machines are told apart by name.
func (p *peer) crowded(processors int) bool {
	here := 0
	for _, m := range p.assign.Members {
		if m.Host == p.assign.Members[p.welcome.Rank].Host {
			here++
		}
	}
	return here*p.assign.Threads > processors
}

// makeRoom fits this peer to a crowded machine, before it waits for anything.
func (p *peer) makeRoom(scheme iterate.Scheme) (crowded bool) {
	if crowded = p.crowded(runtime.NumCPU()); !crowded {
		return false
	}
	p.node.DisableBusyPoll()
	if p.OwnProcess && scheme.Lockstep() {
		// A peer that a message wakes would push aside one that relaxes, and all wait
		// for the last: 8 peers on 2 processors take up to a third less time. Without
		// lockstep news should be taken in as soon as it comes.
		if err := host.Batch(); err != nil {
			p.log.Debug().Err(err).Msg("peers of a crowded machine will push each other aside")
		}
	}
	return true
}
