package method

import (
	"math"
	"math/bits"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Isolated contact points are fine points in contact that lie on no arm of a coarse stencil, or that
// also hold points beside the arm. For example, a terrain touches the membrane at its summits only, and
// coarse grids that ignore them return corrections that lift the membrane off.
//
// In the Galerkin product with interpolation truncated at points in contact (Kornhuber, Numer. Math. 69,
// 1994) each edge from a contact point p to a free neighbour contributes off·v(p)², where v is the
// interpolated correction: a matrix of rank one over the corners of the coarse cell. Here it is lumped on
// the diagonal like a reaction, and restricted from grid to grid like one.
//
// The reaction, relative to the sum of the coarse point's coefficients, is a code of 10 bits above those of
// the arms: 4 bits of mantissa and 6 bits of exponent; 0 means none.
const (
	reactionShift  = 6 * armBits
	reactionBits   = 10
	reactionSteps  = 16
	reactionOffset = 32 // offset of the exponent
)

// encodeReaction returns the code of a relative reaction.
func encodeReaction(part float64) uint64 {
	if !(part > 0) {
		return 0
	}
	fraction, exponent := math.Frexp(min(part, math.MaxUint32))
	code := reactionSteps*(exponent+reactionOffset) + int((fraction-0.5)*2*reactionSteps)
	return uint64(max(1, min(1<<reactionBits-1, code)))
}

// decodeReaction returns the relative reaction in the codes of a point.
func decodeReaction(codes float64) float64 {
	code := int(uint64(codes) >> reactionShift)
	if code == 0 {
		return 0
	}
	return math.Ldexp(0.5+float64(code%reactionSteps)/(2*reactionSteps), code/reactionSteps-reactionOffset)
}

// edgeShare is the part of the cost of edges that is added, by dimension (measured): with less, corrections
// over terrains and noise are rejected; with more, smooth obstacles, whose rounded edges have isolated
// contact points too, need more cycles.
var edgeShare = [4]float64{0, 1, 1, 0.5}

// isolatedContacts computes the reactions of coarse points, one after the other.
type isolatedContacts struct {
	fine, coarse   *Level
	dim            int
	at, near       [3]int     // the coarse point; the fine point on or next to which it lies
	lo, hi         [3]int     // fine points strictly between the coarse neighbours
	spacing        [3]float64 // coarse spacing in fine spacings
	scale          float64    // fine points per coarse point
	coupling       [3]float64 // coupling of fine neighbours along each axis
	couplingSum    float64    // sum over all neighbours of a point
	uneven         bool       // the surrounding edges differ strongly
	coarseCoupling float64    // sum over all neighbours of a coarse point
}

// newIsolatedContacts sets the values that are the same for all points of the next coarser grid.
func (l *Level) newIsolatedContacts(coarse *Level) isolatedContacts {
	s := isolatedContacts{fine: l, coarse: coarse, dim: l.Part.Layout.Dim, scale: 1}
	for a := range s.dim {
		s.spacing[a] = float64(l.Part.Global[a]+1) / float64(coarse.Part.Global[a]+1)
		s.scale *= s.spacing[a]
	}
	s.readCouplings(0)
	return s
}

// readCouplings reads the operator at a dense index. It does not read the coarse operator, which a
// peer that only gathers does not have.
func (s *isolatedContacts) readCouplings(d int) {
	s.couplingSum, s.coarseCoupling = 0, 0
	for a := range s.dim {
		both := math.Abs(s.fine.coefficient(kernel.West+2*a, d)) + math.Abs(s.fine.coefficient(kernel.East+2*a, d))
		s.coupling[a] = both / 2
		s.couplingSum += both
		s.coarseCoupling += both / (s.spacing[a] * s.spacing[a])
	}
}

// code returns the code of the reaction at point at of the coarse grid, which lies on or next to
// the fine point p. lo and hi bound its cell.
func (s *isolatedContacts) code(at, p, lo, hi [3]int) uint64 {
	s.at, s.near = at, p
	s.lo, s.hi = lo, hi
	l := s.fine
	for a := range s.dim {
		s.lo[a], s.hi[a] = max(lo[a], -l.Part.Lo[a]), min(hi[a], l.Part.Global[a]-l.Part.Lo[a])
	}
	if l.edges != nil {
		s.coarseCoupling = s.coarse.conductanceSum(at)
		s.uneven = l.uneven(lo, hi)
	} else if l.operator.Form == kernel.Variable {
		s.readCouplings(l.Part.Layout.Dense(p[0], p[1], p[2]))
	}
	sum := 0.0
	for z := s.lo[2]; z < s.hi[2]; z++ {
		for y := s.lo[1]; y < s.hi[1]; y++ {
			for row := l.marked(s.lo[0], s.hi[0], y, z); row != 0; row &= row - 1 {
				q := [3]int{s.lo[0] + bits.TrailingZeros64(row), y, z}
				if weight := s.weight(q); weight > 0 {
					sum += float64(weight * s.cost(q))
				}
			}
		}
	}
	if sum == 0 {
		return 0
	}
	return encodeReaction(sum / s.scale / s.coarseCoupling)
}

// marked returns the points of a part of a row that are in contact or truncated, one bit each.
func (l *Level) marked(lo, hi, y, z int) uint64 {
	row := l.contact.bits(lo, hi, y, z)
	if l.Truncation != nil {
		row |= l.truncatedSet.bits(lo, hi, y, z)
	}
	return row
}

// cell returns the fine points strictly between the neighbours of a point of the next coarser grid.
func (l *Level) cell(at [3]int) (lo, hi [3]int) {
	hi = [3]int{1, 1, 1}
	for a := range l.Part.Layout.Dim {
		lo[a], hi[a] = int(l.nearestFine[a][at[a]])+1, int(l.nearestFine[a][at[a]+2])
	}
	return lo, hi
}

// cellEmpty reports whether no point of the cell is in contact or truncated.
func (l *Level) cellEmpty(lo, hi [3]int) bool {
	var some uint64
	for z := lo[2]; z < hi[2]; z++ {
		for y := lo[1]; y < hi[1]; y++ {
			some |= l.marked(lo[0], hi[0], y, z)
		}
	}
	return some == 0
}

// conductanceSum returns the sum of the conductances between own point q and its neighbours. The
// level must have edges.
func (l *Level) conductanceSum(q [3]int) float64 {
	sum := 0.0
	for a := range l.Part.Layout.Dim {
		sum += l.conductanceAlong(q, a, -1) + l.conductanceAlong(q, a, 1)
	}
	return sum
}

// maxEdgeRatio is the largest ratio of the conductances of a cell whose edges count as even.
const maxEdgeRatio = 4

// uneven reports whether the edges between the points of a cell and their neighbours differ by more
// than maxEdgeRatio.
func (l *Level) uneven(lo, hi [3]int) bool {
	least, most := math.Inf(1), 0.0
	eachPoint(lo, hi, func(p [3]int) {
		for a := range l.Part.Layout.Dim {
			if v := l.conductance(a, p) * l.edges.Spacing[a] * l.edges.Spacing[a]; v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	})
	return most > maxEdgeRatio*least
}

// weight returns the weight of the coarse point in the interpolation to q.
func (s *isolatedContacts) weight(q [3]int) float64 {
	if w := s.fine.weights; w != nil {
		return w.weight(s.at, q)
	}
	w := 1.0
	for a := range s.dim {
		far := math.Abs(float64(s.fine.Part.Lo[a]+q[a]+1) - float64(s.coarse.Part.Lo[a]+s.at[a]+1)*s.spacing[a])
		w *= max(0, 1-far/s.spacing[a])
	}
	return w
}

// cost returns the cost of a correction of 1 at q that the arms of the coarse point do not include.
func (s *isolatedContacts) cost(q [3]int) float64 {
	if q != s.near && s.fine.contact.has(q) {
		return s.contactCost(q)
	}
	if s.fine.Truncation == nil {
		return 0
	}
	edges := s.couplingSum
	if s.fine.edges != nil {
		edges = s.fine.conductanceSum(q)
	}
	return decodeReaction(s.fine.Truncation[s.fine.Part.Layout.Index(q[0], q[1], q[2])]) * edges
}

// onArm reports whether q lies on an arm of the coarse point along axis a.
func (s *isolatedContacts) onArm(q [3]int, a int) bool {
	for b := range s.dim {
		if b != a && q[b] != s.near[b] {
			return false
		}
	}
	return true
}

// couplingAt returns the coupling of q and the next point along an axis.
func (s *isolatedContacts) couplingAt(a int, q [3]int) float64 {
	if s.fine.edges == nil {
		return s.coupling[a]
	}
	return s.fine.conductance(a, q)
}

// edgeCost returns the counted cost of the edge from q, which is in contact, to its neighbour on
// the coarse point's side.
func (s *isolatedContacts) edgeCost(a int, q, inner [3]int) float64 {
	edge := q
	edge[a] = min(q[a], inner[a])
	if !s.uneven {
		return float64(edgeShare[s.dim] * s.couplingAt(a, edge))
	}
	// The whole cost counts, for the value at the free end: any omitted part could exceed the sum of all other
	// couplings of the coarse point.
	return s.couplingAt(a, edge) * s.weight(inner) / s.weight(q)
}

// contactCost returns the cost of a point in contact: that of its edges to free points, except
// those that lead away from the coarse point, which count for the coarse point's neighbour. If a
// point nearer to the coarse point is in contact too, that one counts instead of q.
func (s *isolatedContacts) contactCost(q [3]int) float64 {
	sum, contact := 0.0, &s.fine.contact
	for a := range s.dim {
		low, high := q, q
		low[a]--
		high[a]++
		switch {
		case s.spacing[a] == 1:
		case q[a] == s.near[a]:
			inside := low[a] >= s.lo[a] && high[a] < s.hi[a]
			if !s.onArm(q, a) && inside && !contact.has(low) && !contact.has(high) {
				sum += s.couplingAt(a, low) + s.couplingAt(a, q)
			}
		default:
			inner := low
			if q[a] < s.near[a] {
				inner = high
			}
			if inner != s.near && contact.has(inner) {
				if s.uneven {
					continue
				}
				return 0
			}
			if !s.onArm(q, a) {
				sum += s.edgeCost(a, q, inner)
			}
		}
	}
	return sum
}
