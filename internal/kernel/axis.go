package kernel

// axis is one axis of a Transfer: where the own points of either grid lie in the
// other. Both grids divide the same interval evenly, so point i of n (from 0) lies at
// (i+1)/(n+1) of it. Positions are exact quotients of the indices in the whole grid, so
// that weights do not depend on how a grid is cut.
type axis struct {
	fine, coarse           int // own points
	fineTotal, coarseTotal int // of the whole grids
	nested                 bool
	inCoarse               []position // per own fine point: where it lies in the coarse grid
	inFine                 []position // per coarse point, ghosts too (entry 0 is index −1): where it lies in the fine grid
	supports               []support  // per own coarse point: the fine points that restriction reads
	weights                []float64  // of all supports, one after the other
	complete               []int      // per number of own fine points, from 0 on: the coarse points that need no others
	scale                  float64    // of a restricted value
}

// step is a place in a grid: t of the way from own index at to at+1.
type position struct {
	index    int
	fraction float64
}

// support is a run of fine points and the place of their weights.
type support struct{ first, firstWeight, count int }

// end is the fine point after the last one.
func (s support) end() int { return s.first + s.count }

// newAxis makes the tables of an axis of nf fine and nc coarse points in all, of which
// f and c belong to the block, the first at f0 and c0.
func newAxis(nf, f0, f, nc, c0, c int) axis {
	a := axis{fine: f, coarse: c, fineTotal: nf, coarseTotal: nc, nested: nf == 2*nc+1, scale: 1}
	for i := range f {
		a.inCoarse = append(a.inCoarse, locate(f0+i, nf, nc, c0))
	}
	for j := -1; j <= c; j++ {
		a.inFine = append(a.inFine, locate(c0+j, nc, nf, f0))
	}
	ratio := float64(nc+1) / float64(nf+1)
	if a.nested { // weights 1, 2, 1 and one exact product at the end
		ratio, a.scale = 2, 0.25
	}
	for j := range c {
		s := support{firstWeight: len(a.weights)}
		// Fine points strictly between the coarse neighbours of j.
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

// place is where point i of a grid of n lies in one of m points whose own point 0 is
// the one at first.
func locate(i, n, m, first int) position {
	at := (i + 1) * (m + 1)
	rest := at % (n + 1)
	return position{at/(n+1) - 1 - first, float64(rest) / float64(n+1)}
}

// reach is the range of own indices that interpolation between at and, unless t is 0,
// at+1 reads.
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

// run is the fine points [first, end) that restriction to coarse points [lo, hi) reads.
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
