package peer

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// rails opens the rails beside Ethernet that the run wants and this host has, in the order of the catalog. After an
// error none is open.
func (e *endpoint) rails() (open []driver.Rail, err error) {
	p, run := e.p, e.p.welcome.Rails
	if e.network, err = rail.Effective(run.Network, p.Rail.Network); err != nil {
		return nil, &UnfitError{err}
	}
	for _, name := range p.Catalog.Links.Names() {
		l, _ := p.Catalog.Links.Lookup("network", name)
		var link microproto.Link
		switch {
		case slices.ContainsFunc(open, func(r driver.Rail) bool { return r.Network == l.Network }):
			p.log.Info().Str("network", name).Stringer("same", l.Network).
				Msg("this link is not used: there is one of its network")
		case name == rail.IB:
			link, err = e.infiniBand(run)
		case name == rail.Memory || name == rail.Shared:
			var why string
			link, why, err = p.Rail.OpenShared(name, nodeName(p.welcome.Rank, e.epoch), p.welcome.Cluster, e.network, run, p.note)
			if why != "" && e.network == rail.Auto {
				p.log.Debug().Str("network", name).Str("why", why).Msg("this link is not used")
			}
		case l.Open != nil && (e.network == rail.Auto && (!l.Compare || e.standsBy()) || e.network == name):
			link, err = l.Open(catalog.LinkConfig{
				Name: nodeName(p.welcome.Rank, e.epoch), Run: e.run(),
				Listen: p.Listen, PortLow: p.PortLow, PortHigh: p.PortHigh,
				Neighbours: run.Neighbours, MessageBytes: run.MessageBytes, Log: p.note,
				Standby: l.Compare && e.network == rail.Auto && !e.compares(),
			})
			switch {
			case err != nil && e.network == name:
				err = fmt.Errorf("--network %s: %w", name, err)
			case err != nil:
				p.log.Info().Err(err).Str("network", name).Msg("this link is not used")
				err = nil
			}
		}
		if err != nil {
			closeRails(open)
			return nil, err
		}
		if link != nil {
			open = append(open, driver.Rail{
				Network: l.Network, Link: link, Synchronous: l.Synchronous,
				Compare: l.Compare && e.network == rail.Auto,
				Standby: l.Compare && e.network == rail.Auto && !e.compares(),
			})
		}
	}
	return open, nil
}

// compareFrom is the length of the longest message, bytes, from which it is worth comparing another network with UDP:
// shorter ones take the same time by either.
const compareFrom = 32 << 10

// compares reports whether the peer compares other networks with UDP: it has to have peers on other hosts, with which
// it exchanges long messages in lockstep.
func (e *endpoint) compares() bool {
	run := &e.p.welcome.Rails
	return !e.p.comparedInVain && run.Synchronous && run.MessageBytes >= compareFrom && e.standsBy()
}

// standsBy reports whether there may be peers on other hosts, to which a firewall may stop UDP: then another network
// stands by.
func (e *endpoint) standsBy() bool {
	host := net.ParseIP(e.p.Listen)
	return e.p.Rail.Memory == nil && !(host != nil && host.IsLoopback()) && e.p.Listen != "localhost"
}

// noteComparisons notes, once the peer is connected, whether no other network was found faster than UDP. Then later
// epochs do not compare them again: that would delay the recovery from a loss.
func (e *endpoint) noteComparisons(to []iterate.Rank) {
	if !e.compares() || len(to) == 0 {
		return
	}
	e.p.comparedInVain = true
	for _, name := range e.p.Catalog.Links.Names() {
		l, _ := e.p.Catalog.Links.Lookup("network", name)
		for _, n := range to {
			for _, r := range e.node.Rails(nodeName(int(n), e.epoch)) {
				if l.Compare && r.Network == l.Network && r.Chosen {
					e.p.comparedInVain = false
				}
			}
		}
	}
}

// infiniBand opens the InfiniBand rail; nil if there is none and none is required.
func (e *endpoint) infiniBand(run rendezvous.Rails) (microproto.Link, error) {
	p := e.p
	o, why, err := p.Rail.Open(nodeName(p.welcome.Rank, e.epoch), e.network, run, p.note)
	switch {
	case err != nil:
		return nil, err
	case o != nil:
		e.ib = *o
		p.log.Info().Str("device", o.Device).Str("why", o.Why).Msg("InfiniBand")
		return o.Link, nil
	case e.network == rail.Auto:
		p.log.Info().Str("why", why).Msg("no InfiniBand here")
	}
	e.noIB = why
	return nil, nil
}

// closeRails closes links that no node has taken over.
func closeRails(all []driver.Rail) {
	for _, r := range all {
		_ = r.Link.Close()
	}
}

// reached returns an error unless every session that the required network carries uses it, or is about to. A session
// that leaves it later, because a port went down, continues over Ethernet and returns.
func (e *endpoint) reached() error {
	if e.network == rail.Auto || e.network == rail.Ether {
		return nil
	}
	l, err := e.p.Catalog.Links.Lookup("network", e.network)
	if err != nil {
		return err
	}
	var all []error
	var checked []string
	for _, s := range e.node.Sessions() {
		left := l.Synchronous && s.Conditions.Mode == microproto.ModeAsynchronous
		if left || s.Conditions.Network == l.Network || slices.Contains(checked, s.Peer) {
			continue
		}
		checked = append(checked, s.Peer)
		if why := e.unreached(s.Peer, l.Network); why != "" {
			all = append(all,
				fmt.Errorf("--network %s: peer %d on %s and peer %d on %s do not reach each other over %v: %s; "+
					"--network auto uses Ethernet between them", e.network,
					e.p.welcome.Rank, e.hostOf(e.p.welcome.Rank), rankOf(s.Peer), e.hostOf(rankOf(s.Peer)), l.Network, why))
		}
	}
	return errors.Join(all...)
}

// unreached returns why there is no path to a node over a network, or "" if there is one.
func (e *endpoint) unreached(node string, network p2psap.Network) string {
	for _, r := range e.node.Rails(node) {
		if r.Network == network {
			return r.Reason
		}
	}
	return "one of them has none"
}

func (e *endpoint) hostOf(rank int) string {
	if rank < 0 || rank >= len(e.assign.Members) {
		return "an unknown host"
	}
	return e.assign.Members[rank].Host
}
