package verify

// cubicTransfer interpolates a profile on another grid of the same domain, by cubics along
// each axis. Values on the boundary are exactly 0.
type cubicTransfer struct {
	from    *comparison
	weights [3][]cubicWeight // for indices 0 … N+1 of the fine grid
}

// cubic are the weights of up to four consecutive nodes, 0 being the boundary.
type cubicWeight struct {
	first int
	of    [4]float64
}

func newCubicTransfer(f *comparison, n [3]int) *cubicTransfer {
	t := &cubicTransfer{from: f}
	for a := range 3 {
		t.weights[a] = interpolationWeights(n[a], f.p.N[a], a < f.p.Dimension)
	}
	return t
}

// cubicWeights are Lagrange's between the nodes of two grids of one interval; of an
// unused axis, whose only node has index 1, that node.
func interpolationWeights(fine, coarse int, used bool) []cubicWeight {
	out := make([]cubicWeight, fine+2)
	for i := range out {
		c := &out[i]
		if !used {
			c.first, c.of[0] = 1, 1
			continue
		}
		x := float64(i) * float64(coarse+1) / float64(fine+1)
		nodes := min(4, coarse+2)
		c.first = max(0, min(int(x)-1, coarse+2-nodes))
		for j := range nodes {
			c.of[j] = 1
			for k := range nodes {
				if k != j {
					c.of[j] *= (x - float64(c.first+k)) / float64(j-k)
				}
			}
		}
	}
	return out
}

// line is the length of the room that rowAt needs.
func (t *cubicTransfer) line() int { return t.from.p.N[0] + 2 }

// rowAt writes w from grid point first (0 and N+1 are the boundary) on along a row.
func (t *cubicTransfer) rowAt(dst, line []float64, first [3]int) {
	clear(line)
	l := t.from.layout
	cy, cz := &t.weights[1][first[1]], &t.weights[2][first[2]]
	for k, wz := range cz.of {
		for j, wy := range cy.of {
			if wy*wz == 0 {
				continue
			}
			from := t.from.w[l.Index(-1, cy.first+j-1, cz.first+k-1):][:len(line)]
			for x, v := range from {
				line[x] += wy * wz * v
			}
		}
	}
	for i := range dst {
		c := &t.weights[0][first[0]+i]
		v := 0.0
		for k, w := range c.of {
			if w != 0 {
				v += w * line[c.first+k]
			}
		}
		dst[i] = v
	}
}

// fill is shape's: w is what rowAt computes.
func (t *cubicTransfer) fill(row []float64, first [3]int) {
	t.rowAt(row, make([]float64, t.line()), first)
}
