package verify

// cubicTransfer interpolates a comparison function to another grid of the same domain, by cubic polynomials
// along each axis. Values on the boundary are exactly 0.
type cubicTransfer struct {
	from    *comparison
	weights [3][]cubicWeight // for indices 0 … N+1 of the fine grid
}

// cubicWeight holds the weights of up to four consecutive nodes. Node 0 is the boundary.
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

// interpolationWeights returns the Lagrange weights between two grids of one interval. On an unused axis the
// only node, index 1, has weight 1.
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

// line returns the length of the work array of rowAt.
func (t *cubicTransfer) line() int { return t.from.p.N[0] + 2 }

// rowAt writes w from grid point first (0 and N+1 denote the boundary) along a row.
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

// fill implements shape.
func (t *cubicTransfer) fill(row []float64, first [3]int) {
	t.rowAt(row, make([]float64, t.line()), first)
}
