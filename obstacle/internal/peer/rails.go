package peer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// rails opens the rails beside Ethernet that the run wants and this host has, in the order of the catalog. After an
// error none is open.
func (p *peer) rails() (open []driver.Rail, err error) {
	run := p.welcome.Rails
	if p.network, err = rail.Effective(run.Network, p.Rail.Network); err != nil {
		return nil, err
	}
	for _, name := range p.Catalog.Links.Names() {
		l, _ := p.Catalog.Links.Lookup("network", name)
		var link microproto.Link
		switch {
		case slices.ContainsFunc(open, func(r driver.Rail) bool { return r.Network == l.Network }):
			p.log.Info().Str("network", name).Stringer("same", l.Network).
				Msg("this link is not used: there is one of its network")
		case name == rail.IB:
			link, err = p.infiniBand(run)
		case name == rail.Memory || name == rail.Shared:
			var why string
			link, why, err = p.Rail.OpenShared(name, nodeName(p.welcome.Rank), p.welcome.Cluster, p.network, run, p.note)
			if why != "" && p.network == rail.Auto {
				p.log.Debug().Str("network", name).Str("why", why).Msg("this link is not used")
			}
		case l.Open != nil && (p.network == rail.Auto && !l.Named || p.network == name):
			link, err = l.Open(catalog.LinkConfig{
				Name: nodeName(p.welcome.Rank), Run: p.welcome.Run,
				Listen: p.Listen, PortLow: p.PortLow, PortHigh: p.PortHigh,
				Neighbours: run.Neighbours, MessageBytes: run.MessageBytes, Log: p.note,
			})
			switch {
			case err != nil && p.network == name:
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
			open = append(open, driver.Rail{Network: l.Network, Link: link})
		}
	}
	return open, nil
}

// infiniBand opens the InfiniBand rail; nil if there is none and none is required.
func (p *peer) infiniBand(run rendezvous.Rails) (microproto.Link, error) {
	o, why, err := p.Rail.Open(nodeName(p.welcome.Rank), p.network, run, p.note)
	switch {
	case err != nil:
		return nil, err
	case o != nil:
		p.ib = *o
		p.log.Info().Str("device", o.Device).Str("why", o.Why).Msg("InfiniBand")
		return o.Link, nil
	case p.network == rail.Auto:
		p.log.Info().Str("why", why).Msg("no InfiniBand here")
	}
	p.noIB = why
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
func (p *peer) reached() error {
	if p.network == rail.Auto || p.network == rail.Ether {
		return nil
	}
	l, err := p.Catalog.Links.Lookup("network", p.network)
	if err != nil {
		return err
	}
	var all []error
	var checked []string
	for _, s := range p.node.Sessions() {
		left := l.Synchronous && s.Conditions.Mode == microproto.ModeAsynchronous
		if left || s.Conditions.Network == l.Network || slices.Contains(checked, s.Peer) {
			continue
		}
		checked = append(checked, s.Peer)
		if why := p.unreached(s.Peer, l.Network); why != "" {
			all = append(all,
				fmt.Errorf("--network %s: peer %d on %s and peer %d on %s do not reach each other over %v: %s; "+
					"--network auto uses Ethernet between them", p.network,
					p.welcome.Rank, p.hostOf(p.welcome.Rank), rankOf(s.Peer), p.hostOf(rankOf(s.Peer)), l.Network, why))
		}
	}
	return errors.Join(all...)
}

// unreached returns why there is no path to a node over a network, or "" if there is one.
func (p *peer) unreached(node string, network p2psap.Network) string {
	for _, r := range p.node.Rails(node) {
		if r.Network == network {
			return r.Reason
		}
	}
	return "one of them has none"
}

func (p *peer) hostOf(rank int) string {
	if rank < 0 || rank >= len(p.assign.Members) {
		return "an unknown host"
	}
	return p.assign.Members[rank].Host
}
