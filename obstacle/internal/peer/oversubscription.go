package peer

import (
	"runtime"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// oversubscribed reports whether the peers of this host have more threads than it has processors. Hosts are compared
// by name.
func (p *peer) oversubscribed(processors int) bool {
	here := 0
	for _, m := range p.assign.Members {
		if m.Host == p.assign.Members[p.welcome.Rank].Host {
			here++
		}
	}
	return here*p.assign.Threads > processors
}

// adaptToLoad sets the waiting and scheduling of this peer for an oversubscribed host and reports whether it is one.
func (p *peer) adaptToLoad(scheme iterate.Scheme) bool {
	if !p.oversubscribed(runtime.NumCPU()) {
		return false
	}
	p.node.DisableBusyPoll()
	if p.OwnProcess && scheme.Lockstep() {
		// A peer that a message wakes would preempt one that relaxes, while all wait for the last: with SCHED_BATCH, 8
		// peers on 2 processors take up to a third less time. Without lockstep, messages should be received at once.
		if err := host.Batch(); err != nil {
			p.log.Debug().Err(err).Msg("peers of this oversubscribed host will preempt each other")
		}
	}
	return true
}
