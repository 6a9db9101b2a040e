package sim

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// fabric is a second network, which connects the adapters of some peers.
type fabric interface {
	rail(rank iterate.Rank) p2psap.LinkContext // the adapter of a peer; nil: it has none
	send(from iterate.Rank, f microproto.Frame)
	plan() // schedules the failures of adapters
}

// rails returns the rails of a peer's node.
func (p *peer) rails() []p2psap.Rail {
	out := []p2psap.Rail{{Network: p2psap.Ethernet, Link: linkAdapter{p.c, p.rank}}}
	if p.c.fabric == nil {
		return out
	}
	if a := p.c.fabric.rail(p.rank); a != nil {
		out = append(out, p2psap.Rail{Network: p2psap.InfiniBand, Link: a})
	}
	return out
}
