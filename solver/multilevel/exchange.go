package multilevel

import (
	"encoding/binary"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// exchange sends own values of some arrays to the neighbours that read them as ghosts.
type exchange struct {
	grids      []grid
	neighbours []neighbourExchange
}

// grid is an array of an exchange. Index (x, y, z), own or ghost, lies where layout specifies. Only points of
// one colour are exchanged, or all if colour is negative.
type grid struct {
	array  []float64
	layout kernel.Layout
	parity int
	colour int
}

// neighbourExchange is the part of an exchange with one neighbour: a box to send and one to receive per grid.
type neighbourExchange struct {
	channel                 *channel
	send, receive           []kernel.Box
	sendBytes, receiveBytes int
}

// finish computes the message lengths and drops neighbours with nothing to exchange. If values travel in one
// direction only, a single number is sent back. Every exchange with a neighbour is thus mutual, and no peer is
// ahead by two messages.
func (x *exchange) finish() {
	active := x.neighbours[:0]
	for _, l := range x.neighbours {
		for k := range x.grids {
			l.sendBytes += 8 * x.grids[k].count(l.send[k])
			l.receiveBytes += 8 * x.grids[k].count(l.receive[k])
		}
		if l.sendBytes+l.receiveBytes > 0 {
			l.sendBytes, l.receiveBytes = max(8, l.sendBytes), max(8, l.receiveBytes)
			active = append(active, l)
		}
	}
	x.neighbours = active
}

func (x *exchange) pack(dst []byte, index int) {
	clear(dst[:8])
	for k := range x.grids {
		dst = x.grids[k].pack(dst, x.neighbours[index].send[k])
	}
}

// receive writes a neighbour's message to the ghosts. It returns false if it has not arrived.
func (x *exchange) receive(index int) (bool, error) {
	l := &x.neighbours[index]
	data, came := l.channel.next(payloadGhosts)
	if !came {
		return false, nil
	}
	if len(data) != l.receiveBytes {
		return false, l.channel.refuse("%d bytes of ghosts; want %d; do both peers use the same partition and method?",
			len(data), l.receiveBytes)
	}
	for k := range x.grids {
		data = x.grids[k].unpack(data, l.receive[k])
	}
	l.channel.consume(payloadGhosts)
	return true, nil
}

// eachRow calls f for the rows of b: the index of the first of n exchanged points, which are stride apart.
func (g *grid) eachRow(b kernel.Box, f func(at, n, stride int)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			x, stride := b.Lo[0], 1
			if g.colour >= 0 {
				stride = 2
				x += (x + y + z + g.parity + g.colour) & 1
			}
			f(g.layout.Index(x, y, z), max(0, (b.Hi[0]-x+stride-1)/stride), stride)
		}
	}
}

func (g *grid) count(b kernel.Box) (points int) {
	g.eachRow(b, func(_, n, _ int) { points += n })
	return points
}

func (g *grid) pack(dst []byte, b kernel.Box) []byte {
	g.eachRow(b, func(at, n, stride int) {
		if stride == 1 {
			kernel.PutFloats(dst, g.array[at:at+n])
		} else {
			for i := range n {
				binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(g.array[at+i*stride]))
			}
		}
		dst = dst[8*n:]
	})
	return dst
}

func (g *grid) unpack(data []byte, b kernel.Box) []byte {
	g.eachRow(b, func(at, n, stride int) {
		if stride == 1 {
			kernel.ReadFloats(g.array[at:at+n], data)
		} else {
			for i := range n {
				g.array[at+i*stride] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
			}
		}
		data = data[8*n:]
	})
	return data
}

// unpackPart sets the points of b to those of box f in data, which holds all points of extent.
func (g *grid) unpackPart(data []byte, extent, b, f kernel.Box) {
	row := extent.Hi[0] - extent.Lo[0]
	plane := row * (extent.Hi[1] - extent.Lo[1])
	for z := range b.Hi[2] - b.Lo[2] {
		for y := range b.Hi[1] - b.Lo[1] {
			dst := g.array[g.layout.Index(b.Lo[0], b.Lo[1]+y, b.Lo[2]+z):][:b.Hi[0]-b.Lo[0]]
			from := (f.Lo[2]+z-extent.Lo[2])*plane + (f.Lo[1]+y-extent.Lo[1])*row + f.Lo[0] - extent.Lo[0]
			kernel.ReadFloats(dst, data[8*from:])
		}
	}
}

// denseGrid returns a grid of an array without ghosts, [z][y][x].
func denseGrid(array []float64, n [3]int) grid {
	return grid{array: array, layout: method.DenseLayout(n), colour: -1}
}
