package problem

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Partition cuts the grid by planes into a tensor product of boxes. Cuts[a] holds 0 = c₀ < c₁ < … = N[a]. Rank
// r owns part (r mod Px, r/Px mod Py, r/(Px·Py)).
type Partition struct{ Cuts [3][]int }

// Neighbour is a peer that shares a face.
type Neighbour struct {
	Rank      iterate.Rank
	Axis      int
	Side      int // −1: low side, +1: high side
	FaceBytes int // 8 bytes per point of the face
}

// Layer returns the outermost layer of own points towards the neighbour, in a box of the given layout.
func (n Neighbour) Layer(l kernel.Layout) kernel.Box {
	b := l.Interior()
	if n.Side < 0 {
		b.Hi[n.Axis] = 1
	} else {
		b.Lo[n.Axis] = l.N[n.Axis] - 1
	}
	return b
}

// MaxPeers bounds the number of peers of one run.
const MaxPeers = 1 << 16

// ErrPartition is wrapped by every error about an impossible partition.
var ErrPartition = errors.New("problem: the grid cannot be partitioned")

// Slabs cuts the grid along the slowest used axis. weights, positive and one per peer, determine the shares of
// the planes; nil means equal shares. Every peer receives at least one plane.
func Slabs(n [3]int, peers int, weights []float64) (Partition, error) {
	axis := 0
	for a, m := range n {
		if m > 1 {
			axis = a
		}
	}
	parts := [3]int{1, 1, 1}
	parts[axis] = peers
	if err := checkParts(n, parts); err != nil {
		return Partition{}, err
	}
	if weights == nil {
		return GridOf(n, parts)
	}
	if len(weights) != peers {
		return Partition{}, fmt.Errorf("%w: %d weights for %d peers", ErrPartition, len(weights), peers)
	}
	total := 0.0
	for r, w := range weights {
		if !(w > 0) || math.IsInf(w, 1) {
			return Partition{}, fmt.Errorf("%w: the weight of peer %d is %v; it must be positive and finite",
				ErrPartition, r, w)
		}
		total += w
	}
	if math.IsInf(total, 1) {
		return Partition{}, fmt.Errorf("%w: the sum of the weights is not finite", ErrPartition)
	}
	p := Partition{Cuts: [3][]int{{0, n[0]}, {0, n[1]}, {0, n[2]}}}
	p.Cuts[axis] = weightedCuts(n[axis], weights, total)
	return p, nil
}

// weightedCuts rounds the cumulative shares and assigns every peer at least one plane.
func weightedCuts(n int, weights []float64, total float64) []int {
	peers := len(weights)
	cuts := make([]int, peers+1)
	sum := 0.0
	for r, w := range weights {
		sum += w
		c := int(math.Round(sum / total * float64(n)))
		c = max(c, cuts[r]+1)
		cuts[r+1] = min(c, n-(peers-1-r))
	}
	cuts[peers] = n
	return cuts
}

// Boxes cuts the grid into boxes with the least total surface. Among equal choices it prefers cuts along slower
// axes, whose faces are contiguous in memory.
func Boxes(n [3]int, peers int) (Partition, error) {
	if peers < 1 || peers > MaxPeers {
		return Partition{}, fmt.Errorf("%w: %d peers; there must be 1 to %d", ErrPartition, peers, MaxPeers)
	}
	best, bestSurface := [3]int{}, math.Inf(1)
	for px := 1; px <= min(peers, n[0]); px++ {
		for py := 1; py <= min(peers/px, n[1]); py++ {
			pz := peers / px / py
			if px*py*pz != peers || pz > n[2] {
				continue
			}
			x, y, z := float64(n[0]), float64(n[1]), float64(n[2])
			surface := float64(px-1)*y*z + float64(py-1)*x*z + float64(pz-1)*x*y
			if surface < bestSurface {
				best, bestSurface = [3]int{px, py, pz}, surface
			}
		}
	}
	if math.IsInf(bestSurface, 1) {
		return Partition{}, fmt.Errorf(
			"%w: no product of three numbers equal to %d peers fits into %v points; use fewer peers", ErrPartition,
			peers, n)
	}
	return GridOf(n, best)
}

// SlabsOrBoxes returns slabs, whose faces are contiguous in memory, unless boxes have less than half of their
// surface, and the reason for the choice. With weights, one per peer, it returns slabs (see Slabs).
func SlabsOrBoxes(n [3]int, peers int, weights []float64) (p Partition, why string, err error) {
	slabs, err := Slabs(n, peers, weights)
	switch {
	case len(weights) > 0:
		return slabs, "slabs, whose thickness follows the weights", err
	case err == nil && peers == 1:
		return slabs, "there is one part", nil
	case err == nil && peers < 4:
		return slabs, fmt.Sprintf("slabs, which have the least surface for %d parts", peers), nil
	}
	boxes, err2 := Boxes(n, peers)
	if err != nil {
		return boxes, fmt.Sprintf("boxes, because the grid has fewer planes than %d slabs need", peers), err2
	}
	if err2 != nil {
		return slabs, "slabs, because no boxes fit the grid", nil
	}
	share := 100 * float64(boxes.surface()) / float64(slabs.surface())
	if share < 50 {
		return boxes, fmt.Sprintf("boxes, whose faces have %.0f %% of the bytes of those of slabs", share), nil
	}
	why = fmt.Sprintf("slabs, whose faces are contiguous in memory; those of boxes have %.0f %% of their bytes, and boxes "+
		"are chosen below 50 %%", share)
	return slabs, why, nil
}

// surface returns the total size of all faces in bytes.
func (p Partition) surface() int {
	total := 0
	for r := range p.Peers() {
		for _, n := range p.Neighbours(iterate.Rank(r)) {
			total += n.FaceBytes
		}
	}
	return total
}

// GridOf cuts axis a into p[a] parts of nearly equal size. If N[a] is not divisible, the first parts have one
// more point.
func GridOf(n [3]int, p [3]int) (Partition, error) {
	if err := checkParts(n, p); err != nil {
		return Partition{}, err
	}
	var out Partition
	for a := range n {
		out.Cuts[a] = make([]int, p[a]+1)
		for i := range out.Cuts[a] {
			out.Cuts[a][i] = n[a]/p[a]*i + min(i, n[a]%p[a])
		}
	}
	return out, nil
}

func checkParts(n, p [3]int) error {
	peers := 1
	for a := range n {
		if n[a] < 1 {
			return fmt.Errorf("%w: axis %d has %d points", ErrPartition, a, n[a])
		}
		if p[a] < 1 {
			return fmt.Errorf("%w: %d parts along axis %d", ErrPartition, p[a], a)
		}
		if p[a] > n[a] {
			return fmt.Errorf("%w: %d parts along axis %d, which has only %d points; use fewer peers", ErrPartition,
				p[a], a, n[a])
		}
		if p[a] > MaxPeers/peers {
			return fmt.Errorf("%w: more than %d peers", ErrPartition, MaxPeers)
		}
		peers *= p[a]
	}
	return nil
}

// Validate returns an error unless the partition covers a grid of n points.
func (p Partition) Validate(n [3]int) error {
	peers := 1
	for a, cuts := range p.Cuts {
		if len(cuts) < 2 || cuts[0] != 0 || cuts[len(cuts)-1] != n[a] {
			return fmt.Errorf("%w: the cuts of axis %d are %v; they must run from 0 to %d", ErrPartition, a, cuts, n[a])
		}
		for i := 1; i < len(cuts); i++ {
			if cuts[i] <= cuts[i-1] {
				return fmt.Errorf("%w: the cuts of axis %d do not increase: %v", ErrPartition, a, cuts)
			}
		}
		if len(cuts)-1 > MaxPeers/peers {
			return fmt.Errorf("%w: more than %d peers", ErrPartition, MaxPeers)
		}
		peers *= len(cuts) - 1
	}
	return nil
}

// Parts returns the number of parts along each axis.
func (p Partition) Parts() [3]int {
	var parts [3]int
	for a, c := range p.Cuts {
		parts[a] = max(len(c)-1, 0)
	}
	return parts
}

// Peers returns the number of boxes.
func (p Partition) Peers() int {
	n := p.Parts()
	return n[0] * n[1] * n[2]
}

// Position returns the position of rank r in the grid of boxes.
func (p Partition) Position(r iterate.Rank) [3]int {
	n := p.Parts()
	return [3]int{int(r) % n[0], int(r) / n[0] % n[1], int(r) / (n[0] * n[1])}
}

// Box returns the box of rank r, 0 ≤ r < Peers().
func (p Partition) Box(r iterate.Rank) Box {
	var b Box
	for a, i := range p.Position(r) {
		b.Lo[a], b.Hi[a] = p.Cuts[a][i], p.Cuts[a][i+1]
	}
	return b
}

// Neighbours returns the neighbours of rank r in the order x−, x+, y−, y+, z−, z+.
func (p Partition) Neighbours(r iterate.Rank) []Neighbour {
	parts, place, box := p.Parts(), p.Position(r), p.Box(r)
	size := box.Size()
	stride := [3]int{1, parts[0], parts[0] * parts[1]}
	var out []Neighbour
	for a := range 3 {
		for _, side := range []int{-1, 1} {
			if at := place[a] + side; at >= 0 && at < parts[a] {
				rank, bytes := r+iterate.Rank(side*stride[a]), 8*(box.Points()/size[a])
				out = append(out, Neighbour{Rank: rank, Axis: a, Side: side, FaceBytes: bytes})
			}
		}
	}
	return out
}

// TreeOf returns the place of rank r in the spanning tree of the peers. The path to rank 0 goes along z, then
// y, then x. A rank computes its parent locally, and the depth equals that of a breadth-first tree.
func TreeOf(p Partition, r iterate.Rank) iterate.Tree {
	t := iterate.Tree{Parent: ParentOf(p, r)}
	for _, n := range p.Neighbours(r) {
		if ParentOf(p, n.Rank) == r {
			t.Children = append(t.Children, n.Rank)
		}
	}
	return t
}

// ParentOf returns the parent of rank r in the tree, −1 for the root.
func ParentOf(p Partition, r iterate.Rank) iterate.Rank {
	parts, place := p.Parts(), p.Position(r)
	switch {
	case place[2] > 0:
		return r - iterate.Rank(parts[0]*parts[1])
	case place[1] > 0:
		return r - iterate.Rank(parts[0])
	case place[0] > 0:
		return r - 1
	}
	return -1
}

// Clusters labels the peers of a partition with n clusters 0 … n−1 of nearly equal size. The peers are ordered
// along a snake through the grid of boxes, in which consecutive boxes share a face. Each cluster is a range of
// that order and therefore connected. At most as many clusters as peers are made.
func Clusters(p Partition, n int) []int {
	parts, peers := p.Parts(), p.Peers()
	out := make([]int, peers)
	for r := range out {
		out[r] = snakeIndex(p.Position(iterate.Rank(r)), parts) * max(1, min(n, peers)) / peers
	}
	return out
}

// snakeIndex returns the index of a box along the snake: rows and planes alternate in direction.
func snakeIndex(at, parts [3]int) int {
	y := at[1]
	if at[2]%2 == 1 {
		y = parts[1] - 1 - y
	}
	row := y + parts[1]*at[2]
	x := at[0]
	if row%2 == 1 {
		x = parts[0] - 1 - x
	}
	return x + parts[0]*row
}
