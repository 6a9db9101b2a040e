package multilevel

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// exchange brings own values of some arrays to the neighbours that read them as ghosts.
type exchange struct {
	grids      []grid
	neighbours []neighbourExchange
}

// grid is an array of an exchange: index (x, y, z), own or ghost, lies where layout
// says; only points of a colour travel, all if it is negative.
type grid struct {
	array  []float64
	layout kernel.Layout
	parity int
	colour int
}

// leg is an exchange with one neighbour: for each grid what goes and what comes.
type neighbourExchange struct {
	channel                 *channel
	send, receive           []kernel.Box
	sendBytes, receiveBytes int
}

// close counts the bytes of the legs once they are complete. Where something goes one
// way only, a number comes back: an exchange with a neighbour is one both ways, or there
// is none, so that nobody gets ahead of anybody by two messages.
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

// read brings what a neighbour sent to the ghosts, false while it has not come.
func (x *exchange) receive(index int) (bool, error) {
	l := &x.neighbours[index]
	data, came := l.channel.next(payloadGhosts)
	if !came {
		return false, nil
	}
	if len(data) != l.receiveBytes {
		return false, fmt.Errorf("solver: rank %d sent %d bytes of ghosts where %d belong: do both peers use the same partition and method?",
			l.channel.to.Rank, len(data), l.receiveBytes)
	}
	for k := range x.grids {
		data = x.grids[k].unpack(data, l.receive[k])
	}
	l.channel.consume(payloadGhosts)
	return true, nil
}

// first is where a row begins, and how far apart its points are.
func (g *grid) first(x, y, z int) (from, stride int) {
	switch {
	case g.colour < 0:
		return x, 1
	case (x+y+z+g.parity)&1 == g.colour:
		return x, 2
	}
	return x + 1, 2
}

func (g *grid) count(b kernel.Box) int {
	n := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			n += max(0, (b.Hi[0]-from+stride-1)/stride)
		}
	}
	return n
}

func (g *grid) pack(dst []byte, b kernel.Box) []byte {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			at := g.layout.Index(from, y, z)
			for x := from; x < b.Hi[0]; x += stride {
				binary.LittleEndian.PutUint64(dst, math.Float64bits(g.array[at]))
				dst = dst[8:]
				at += stride
			}
		}
	}
	return dst
}

func (g *grid) unpack(data []byte, b kernel.Box) []byte {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			at := g.layout.Index(from, y, z)
			for x := from; x < b.Hi[0]; x += stride {
				g.array[at] = math.Float64frombits(binary.LittleEndian.Uint64(data))
				data = data[8:]
				at += stride
			}
		}
	}
	return data
}

// copy sets the points of b to those of another grid's box of the same shape.
func (g *grid) copy(b kernel.Box, from *grid, f kernel.Box) {
	n := b.Hi[0] - b.Lo[0]
	for z := range b.Hi[2] - b.Lo[2] {
		for y := range b.Hi[1] - b.Lo[1] {
			dst := g.array[g.layout.Index(b.Lo[0], b.Lo[1]+y, b.Lo[2]+z):][:n]
			copy(dst, from.array[from.layout.Index(f.Lo[0], f.Lo[1]+y, f.Lo[2]+z):][:n])
		}
	}
}

// unpackPart sets the points of b to those of box f in data, which holds all of extent.
func (g *grid) unpackPart(data []byte, extent, b, f kernel.Box) {
	row := extent.Hi[0] - extent.Lo[0]
	plane := row * (extent.Hi[1] - extent.Lo[1])
	for z := range b.Hi[2] - b.Lo[2] {
		for y := range b.Hi[1] - b.Lo[1] {
			dst := g.array[g.layout.Index(b.Lo[0], b.Lo[1]+y, b.Lo[2]+z):][:b.Hi[0]-b.Lo[0]]
			from := (f.Lo[2]+z-extent.Lo[2])*plane + (f.Lo[1]+y-extent.Lo[1])*row + f.Lo[0] - extent.Lo[0]
			for i := range dst {
				dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*(from+i):]))
			}
		}
	}
}

// denseGrid is a grid of an array without ghosts, [z][y][x].
func denseGrid(array []float64, n [3]int) grid {
	return grid{array: array, layout: kernel.Layout{Dim: 3, N: n, Row: n[0], Plane: n[0] * n[1]}, colour: -1}
}
