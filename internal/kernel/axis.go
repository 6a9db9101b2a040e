package kernel

// axis holds the tables of a Transfer for one axis: the position of each own point of one grid in the other. Both
// grids divide the same interval evenly, so point i of n lies at (i+1)/(n+1) of it. Positions are exact quotients of
// indices of the whole grid; weights therefore do not depend on the partition into blocks.
type axis struct {
	fine, coarse           int // own points
	fineTotal, coarseTotal int // points of the whole grids
	nested                 bool
	inCoarse               []position // position of each own fine point in the coarse grid
	supports               []support  // fine points that restriction to each own coarse point reads
	weights                []float64  // weights of all supports, concatenated
	complete               []int      // entry i: coarse points whose supports end before fine point i
	scale                  float64    // factor of a restricted value
}

// position is a point between two indices of a grid: the part fraction of the way from index to index+1.
type position struct {
	index    int
	fraction float64
}

// support is a range of fine points; firstWeight is the index of its first weight.
type support struct{ first, firstWeight, count int }

// end returns the index after the last fine point.
func (s support) end() int { return s.first + s.count }

// newAxis returns the tables of an axis of nf fine and nc coarse points, of which the block has f
// fine points from f0 on and c coarse points from c0 on.
func newAxis(nf, f0, f, nc, c0, c int) axis {
	a := axis{fine: f, coarse: c, fineTotal: nf, coarseTotal: nc, nested: nf == 2*nc+1, scale: 1}
	for i := range f {
		a.inCoarse = append(a.inCoarse, locate(f0+i, nf, nc, c0))
	}
	ratio := float64(nc+1) / float64(nf+1)
	if a.nested { // weights 1, 2, 1; the exact factor ¼ is applied last
		ratio, a.scale = 2, 0.25
	}
	for j := range c {
		s := support{firstWeight: len(a.weights)}
		// The support is the fine points strictly between the coarse neighbours of j.
		for i := (c0+j)*(nf+1)/(nc+1) - 1; i <= (c0+j+2)*(nf+1)/(nc+1); i++ {
			if i < 0 || i >= nf {
				continue
			}
			p := locate(i, nf, nc, c0)
			var w float64
			switch j {
			case p.index:
				w = 1 - p.fraction
			case p.index + 1:
				w = p.fraction
			}
			if w == 0 {
				continue
			}
			if s.count == 0 {
				s.first = i - f0
			}
			s.count++
			a.weights = append(a.weights, float64(ratio*w))
		}
		a.supports = append(a.supports, s)
	}
	a.complete = make([]int, f+1)
	for i, j := 0, 0; i <= f; i++ {
		for j < c && i > 0 && (a.supports[j].count == 0 || a.supports[j].end() <= i) {
			j++
		}
		a.complete[i] = j
	}
	return a
}

// locate returns the position of point i of a grid of n points in a grid of m points whose own
// points begin at index first.
func locate(i, n, m, first int) position {
	at := (i + 1) * (m + 1)
	rest := at % (n + 1)
	return position{at/(n+1) - 1 - first, float64(rest) / float64(n+1)}
}

// reach returns the range of indices that interpolation at the positions reads. index+1 is read
// only if fraction is not 0.
func reach(steps []position) (lo, hi int) {
	lo, hi = steps[0].index, steps[0].index
	for _, s := range steps {
		last := s.index
		if s.fraction != 0 {
			last++
		}
		lo, hi = min(lo, s.index), max(hi, last)
	}
	return lo, hi
}

// fineRange returns the fine points [first, end) that restriction to the coarse points [lo, hi) reads.
func (a *axis) fineRange(lo, hi int) (first, end int) {
	found := false
	for _, s := range a.supports[lo:hi] {
		if s.count == 0 {
			continue
		}
		if !found {
			first, found = s.first, true
		}
		end = max(end, s.end())
	}
	return first, max(first, end)
}
