package peer

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/host/pin"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// oversubscribed reports whether the peers of this host have more threads than it has processors. Hosts are compared
// by name.
func (e *endpoint) oversubscribed(processors int) bool {
	here, _ := e.here()
	return here*e.p.welcome.Spec.Threads > processors
}

// stops reports whether the peer of a rank, on this host, stops as soon as others are lost. Peers that wait for a lost one
// do: all in lockstep, and in a hybrid run those of its cluster. So do those of an oversubscribed host, since the
// processors are for the repair, unless they are slowed down, and those between which planes move, since their boxes
// must not change any more.
func (e *epoch) stops(rank int, lost []int) bool {
	c := &e.work.config
	if c.Scheme.Lockstep() || c.Balance || c.Problem.Steps() > 0 {
		return true
	}
	processors := float64(runtime.NumCPU()) * max(1, e.assign.Slowdown)
	return e.oversubscribed(int(processors)) || slices.ContainsFunc(lost, func(q int) bool {
		return c.Scheme.Between(iterate.Rank(rank), iterate.Rank(q)).Lockstep()
	})
}

// allStop reports whether all peers of this host stop as soon as others are lost.
func (e *epoch) allStop(lost []int) bool {
	own := e.assign.Members[e.p.welcome.Rank].Host
	return !slices.ContainsFunc(e.assign.Members, func(m rendezvous.Member) bool {
		return m.Host == own && !e.stops(m.Rank, lost)
	})
}

// here returns the number of peers on this host, and how many of them come before this one. Peers that take turns count
// as one, in the order of the first.
func (e *endpoint) here() (peers, before int) {
	own := e.assign.Members[e.p.welcome.Rank]
	type process struct {
		pid   int
		space uint64
	}
	seen := map[process]bool{}
	passed := false
	for _, m := range e.assign.Members {
		at := process{m.Pid, m.PidSpace}
		if m.Host != own.Host || e.p.welcome.Spec.Parts > 1 && seen[at] {
			continue
		}
		seen[at] = true
		peers++
		passed = passed || m.Rank == own.Rank || e.p.welcome.Spec.Parts > 1 && at == process{own.Pid, own.PidSpace}
		if !passed {
			before++
		}
	}
	return peers, before
}

// bind binds this process to processors that no other peer uses. It does nothing if the process runs several peers or
// the host has too few processors; the log says why.
func (e *endpoint) bind() {
	p := e.p
	if !e.p.welcome.Spec.Pin || !p.OwnProcess || p.processors != nil {
		return
	}
	all, err := pin.Allowed()
	if err == nil {
		peers, before := e.here()
		places := pin.Place(all, peers, e.p.welcome.Spec.Threads)
		if places == nil {
			err = fmt.Errorf("%d peers with %d threads have %d processors", peers, e.p.welcome.Spec.Threads, len(all))
		} else if p.claim, err = pin.Bind(places[before]); err == nil {
			p.processors = places[before]
			p.log.Debug().Ints("processors", p.processors).Msg("bound to processors")
			return
		}
	}
	p.log.Debug().Err(err).Msg("not bound to processors")
}

// adaptToLoad sets the waiting and scheduling of this peer for an oversubscribed host, or a process of several peers, and
// reports whether it is one.
func (e *endpoint) adaptToLoad(scheme iterate.Scheme) bool {
	if e.p.welcome.Spec.Parts <= 1 && !e.oversubscribed(runtime.NumCPU()) {
		return false
	}
	e.node.DisableBusyPoll()
	if e.p.OwnProcess && scheme.Lockstep() {
		// A peer that a message wakes would preempt one that relaxes, while all wait for the last: with SCHED_BATCH, 8
		// peers on 2 processors take up to a third less time. Without lockstep, messages should be received at once.
		if err := host.Batch(); err != nil {
			e.p.log.Debug().Err(err).Msg("peers of this oversubscribed host will preempt each other")
		}
	}
	return true
}
