package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// faceExchange brings the outermost layers of own points to the neighbours' ghosts;
// own is the peer's box within the layout.
func faceExchange(channels []*channel, g grid, own kernel.Box) *exchange {
	x := &exchange{grids: []grid{g}}
	for _, w := range channels {
		x.addNeighbour(w, own, 1, 1)
	}
	x.finish()
	return x
}

// add is a leg that brings layers along the axis of a neighbour: as many as this peer
// reads, and as many as the other one does. b is what else is brought along: own points
// of that axis, of the others what both have.
func (x *exchange) addNeighbour(w *channel, b kernel.Box, reads, sends int) {
	a := w.to.Axis
	send, receive := b, b
	if w.to.Side < 0 {
		send.Hi[a] = b.Lo[a] + sends
		receive.Lo[a], receive.Hi[a] = b.Lo[a]-reads, b.Lo[a]
	} else {
		send.Lo[a] = b.Hi[a] - sends
		receive.Lo[a], receive.Hi[a] = b.Hi[a], b.Hi[a]+reads
	}
	l := neighbourExchange{channel: w}
	for range x.grids {
		l.send, l.receive = append(l.send, send), append(l.receive, receive)
	}
	x.neighbours = append(x.neighbours, l)
}

// depth is how many layers a peer reads beyond its own points, and how many its
// neighbours read of them, below and above, axis by axis.
type depth struct{ readLow, readHigh, sendLow, sendHigh [3]int }

// oneLayer is the depth that interpolation needs.
func oneLayer() depth {
	one := [3]int{1, 1, 1}
	return depth{one, one, one, one}
}

// phases bring ghosts on edges and corners, too: axis after axis, each phase passing on
// what the ones before have brought. Only peers that share a face exchange anything.
func phases(channels []*channel, own kernel.Box, d depth, grids ...grid) []*exchange {
	var out []*exchange
	b := own
	for a := range 3 {
		x := &exchange{grids: grids}
		grown := b
		for _, w := range channels {
			switch {
			case w.to.Axis != a:
			case w.to.Side < 0:
				x.addNeighbour(w, b, d.readLow[a], d.sendLow[a])
				grown.Lo[a] -= d.readLow[a]
			default:
				x.addNeighbour(w, b, d.readHigh[a], d.sendHigh[a])
				grown.Hi[a] += d.readHigh[a]
			}
		}
		if x.finish(); len(x.neighbours) > 0 {
			out = append(out, x)
		}
		b = grown
	}
	return out
}

// depthOf is what restriction from a grid of the plan reads and sends.
func (p *levelPlan) depthOf(l int, rank iterate.Rank) depth {
	var d depth
	d.readLow, d.readHigh = p.reaches(l, rank)
	place, parts := p.parts[l].Place(rank), p.parts[l].Parts()
	for a := range 3 {
		if place[a] > 0 {
			_, d.sendLow[a] = p.reach(p.parts[l], p.parts[l+1], l, a, place[a]-1)
		}
		if place[a]+1 < parts[a] {
			d.sendHigh[a], _ = p.reach(p.parts[l], p.parts[l+1], l, a, place[a]+1)
		}
	}
	return d
}
