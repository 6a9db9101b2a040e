package problem

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Partition cuts the grid by planes (a tensor product): Cuts[a] holds
// 0 = c₀ < c₁ < … = N[a]. Rank r owns part (r mod Px, r/Px mod Py, r/(Px·Py)).
type Partition struct{ Cuts [3][]int }

// Neighbour is a peer that shares a face.
type Neighbour struct {
	Rank      iterate.Rank
	Axis      int
	Side      int // −1: it lies on the low side, +1: on the high side
	FaceBytes int // 8 × points of the face
}

// Layer is the outermost own points towards the neighbour, in a box of that layout.
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

// ErrPartition is wrapped by every error about a partition that cannot be made.
var ErrPartition = errors.New("solver: the grid cannot be cut like this")

// Slabs cuts along the slowest used axis. weights, one per peer and positive,
// give the shares of the planes; nil means even. Every peer gets a plane at least.
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
			return Partition{}, fmt.Errorf("%w: the weight of peer %d is %v, it must be positive and finite", ErrPartition, r, w)
		}
		total += w
	}
	if math.IsInf(total, 1) {
		return Partition{}, fmt.Errorf("%w: the weights' sum is not finite", ErrPartition)
	}
	p := Partition{Cuts: [3][]int{{0, n[0]}, {0, n[1]}, {0, n[2]}}}
	p.Cuts[axis] = weightedCuts(n[axis], weights, total)
	return p, nil
}

// weightedCuts rounds the cumulated shares and leaves everyone one plane.
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

// Boxes cuts into peers boxes with the least surface between them; among equals
// the one that cuts the slower axes wins, whose faces lie together in memory.
func Boxes(n [3]int, peers int) (Partition, error) {
	if peers < 1 || peers > MaxPeers {
		return Partition{}, fmt.Errorf("%w: %d peers; there may be 1 to %d", ErrPartition, peers, MaxPeers)
	}
	best, bestSurface := [3]int{}, math.Inf(1)
	for px := 1; px <= peers; px++ {
		if peers%px != 0 || px > n[0] {
			continue
		}
		for py := 1; py <= peers/px; py++ {
			if (peers/px)%py != 0 || py > n[1] {
				continue
			}
			pz := peers / px / py
			if pz > n[2] {
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
		return Partition{}, fmt.Errorf("%w: %d peers, and no product of three numbers that is %d fits into %v points; use fewer peers",
			ErrPartition, peers, peers, n)
	}
	return GridOf(n, best)
}

// SlabsOrBoxes cuts a grid into slabs, whose faces lie together in memory, until boxes have less
// than half of their surface. With weights, one for each peer, it is slabs (see Slabs).
func SlabsOrBoxes(n [3]int, peers int, weights []float64) (Partition, error) {
	slabs, err := Slabs(n, peers, weights)
	if len(weights) > 0 || err == nil && peers < 4 {
		return slabs, err
	}
	boxes, err2 := Boxes(n, peers)
	if err != nil || err2 == nil && 2*boxes.surface() < slabs.surface() {
		return boxes, err2
	}
	return slabs, nil
}

// surface counts the bytes of all faces.
func (p Partition) surface() int {
	total := 0
	for r := range p.Peers() {
		for _, n := range p.Neighbours(iterate.Rank(r)) {
			total += n.FaceBytes
		}
	}
	return total
}

// GridOf cuts axis a into p[a] parts as even as possible; the first ones are
// larger by one where it does not divide.
func GridOf(n [3]int, p [3]int) (Partition, error) {
	if err := checkParts(n, p); err != nil {
		return Partition{}, err
	}
	var out Partition
	for a := range n {
		cuts := make([]int, p[a]+1)
		for i := range p[a] {
			cuts[i+1] = cuts[i] + n[a]/p[a]
			if i < n[a]%p[a] {
				cuts[i+1]++
			}
		}
		out.Cuts[a] = cuts
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
			return fmt.Errorf("%w: %d parts along axis %d, which has only %d points; use fewer peers", ErrPartition, p[a], a, n[a])
		}
		if p[a] > MaxPeers/peers {
			return fmt.Errorf("%w: more than %d peers", ErrPartition, MaxPeers)
		}
		peers *= p[a]
	}
	return nil
}

// Validate tells whether the partition covers a grid of n points.
func (p Partition) Validate(n [3]int) error {
	peers := 1
	for a, cuts := range p.Cuts {
		if len(cuts) < 2 || cuts[0] != 0 || cuts[len(cuts)-1] != n[a] {
			return fmt.Errorf("%w: the cuts of axis %d are %v, they must run from 0 to %d", ErrPartition, a, cuts, n[a])
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

// Parts is the number of parts along each axis.
func (p Partition) Parts() [3]int {
	var parts [3]int
	for a, c := range p.Cuts {
		parts[a] = max(len(c)-1, 0)
	}
	return parts
}

// Peers is the number of boxes.
func (p Partition) Peers() int {
	n := p.Parts()
	return n[0] * n[1] * n[2]
}

// Place is the position of rank r in the grid of boxes.
func (p Partition) Place(r iterate.Rank) [3]int {
	n := p.Parts()
	return [3]int{int(r) % n[0], int(r) / n[0] % n[1], int(r) / (n[0] * n[1])}
}

// Box is the box of rank r, 0 ≤ r < Peers().
func (p Partition) Box(r iterate.Rank) Box {
	var b Box
	for a, i := range p.Place(r) {
		b.Lo[a], b.Hi[a] = p.Cuts[a][i], p.Cuts[a][i+1]
	}
	return b
}

// Neighbours of rank r in the order x−, x+, y−, y+, z−, z+.
func (p Partition) Neighbours(r iterate.Rank) []Neighbour {
	parts, place, box := p.Parts(), p.Place(r), p.Box(r)
	size := box.Size()
	stride := [3]int{1, parts[0], parts[0] * parts[1]}
	var out []Neighbour
	for a := range 3 {
		bytes := 8 * (box.Points() / size[a])
		if place[a] > 0 {
			out = append(out, Neighbour{Rank: r - iterate.Rank(stride[a]), Axis: a, Side: -1, FaceBytes: bytes})
		}
		if place[a] < parts[a]-1 {
			out = append(out, Neighbour{Rank: r + iterate.Rank(stride[a]), Axis: a, Side: 1, FaceBytes: bytes})
		}
	}
	return out
}
