package peer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// rails opens the rails that are better than Ethernet, as far as the run wants them and
// this host has them.
func (p *peer) rails() (better []driver.Rail, err error) {
	run := p.welcome.Rails
	if p.network, err = rail.Effective(run.Network, p.Rail.Network); err != nil {
		return nil, err
	}
	p.second, p.without, err = p.Rail.Open(nodeName(p.welcome.Rank), p.network, run, p.note)
	switch {
	case err != nil:
		return nil, err
	case p.second == nil:
		if p.network != rail.Ether {
			p.log.Info().Str("why", p.without).Msg("no InfiniBand here")
		}
		return nil, nil
	}
	p.log.Info().Str("device", p.second.Device).Str("why", p.second.Why).Msg("InfiniBand")
	return []driver.Rail{{Network: p2psap.InfiniBand, Link: p.second.Link}}, nil
}

// closeRail closes what no node has taken over.
func (p *peer) closeRail() {
	if p.second != nil {
		_ = p.second.Link.Close()
	}
}

// registrar is a link that sends from memory which it has allocated without a copy. See
// ib.Link.
type registrar interface {
	Allocate(n int) ([]byte, error)
	Free(b []byte) error
}

// faces makes such memory; nil: the InfiniBand rail is not there.
func (p *peer) faces() func(n int) ([]byte, error) {
	if p.second == nil {
		return nil
	}
	l, ok := p.second.Link.(registrar)
	if !ok {
		return nil
	}
	return func(n int) ([]byte, error) {
		b, err := l.Allocate(n)
		if err != nil {
			p.log.Info().Err(err).Msg("faces are sent with a copy")
			return nil, err
		}
		p.face = append(p.face, b)
		return b, nil
	}
}

// freeFaces gives the memory back when nothing sends from it any more.
func (p *peer) freeFaces() {
	for _, b := range p.face {
		if err := p.second.Link.(registrar).Free(b); err != nil {
			p.log.Error().Err(err).Msg("memory of faces")
		}
	}
	p.face = nil
}

// device is that of the InfiniBand rail; empty: there is none.
func (p *peer) device() string {
	if p.second == nil {
		return ""
	}
	return p.second.Device
}

// fabric tells whether every session is on InfiniBand, or about to be, where the run
// wants nothing else. A session that leaves it later, because a port went down, goes on
// over Ethernet and comes back.
func (p *peer) fabric() error {
	if p.network != rail.IB {
		return nil
	}
	var all []error
	var looked []string
	for _, s := range p.node.Sessions() {
		if s.Conditions.Network == p2psap.InfiniBand || slices.Contains(looked, s.Peer) {
			continue
		}
		looked = append(looked, s.Peer)
		if why := p.apart(s.Peer); why != "" {
			all = append(all, fmt.Errorf("--network ib: peer %d on %s and peer %d on %s have no InfiniBand fabric in common: %s; --network auto uses Ethernet between them",
				p.welcome.Rank, p.hostOf(p.welcome.Rank), rankOf(s.Peer), p.hostOf(rankOf(s.Peer)), why))
		}
	}
	return errors.Join(all...)
}

// apart is why there is no InfiniBand to a node; empty: there is.
func (p *peer) apart(node string) string {
	for _, r := range p.node.Rails(node) {
		if r.Network == p2psap.InfiniBand {
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
