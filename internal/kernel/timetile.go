package kernel

// span is an interval of an axis whose ends move by a fixed amount per sweep.
type span struct{ lo, hi, loStep, hiStep int }

// atSweep returns the interval of sweep t.
func (s span) atSweep(t int) (lo, hi int) { return s.lo + t*s.loStep, s.hi + t*s.hiStep }

// TimeTiles executes several Jacobi sweeps of a whole block with fixed ghosts in one pass over memory. Sweep t of a
// tile covers the rows of sweep 0 shifted down by t, so that tiles in ascending order satisfy all dependencies:
// parallelograms in space and time (Wolfe, Supercomputing '89, p. 655). A tile ascends the slowest axis plane by
// plane, with sweep t running t planes behind (Lamport's hyperplanes, CACM 17(2), 1974).
//
// Each thread processes one piece of the slowest axis, which shrinks by one plane per sweep at a
// border with another piece. The gaps between the pieces are processed afterwards, divided along
// the next axis in the same way. No point is relaxed twice.
//
// TimeTiles must not be used by several goroutines at once. It allocates only when it is made.
type TimeTiles struct {
	sweep       *Sweep
	tiling      Tiling
	wave, block int    // axes; wave is −1 in 1-D
	size        [2]int // points along these axes
	arrays      [2][]float64
	sweeps      int // sweeps of the group in progress
	tile        int
	phase       int
	run         func(i int)
}

// The phases of a group.
const (
	shrinking = iota // shrinking pieces of the wave axis
	between          // gaps between them, in shrinking pieces of the block axis
	corners          // gaps between these in turn
)

// NewTimeTiles prepares groups of sweeps by s.
func NewTimeTiles(s *Sweep, t Tiling) *TimeTiles {
	c := *s
	c.streams = false // new values are read again soon
	p := &TimeTiles{sweep: &c, tiling: s.tiling(t, cacheBytes()), wave: s.layout.Dim - 1, block: s.layout.Dim - 2}
	if s.layout.Dim == 1 {
		p.wave, p.block = -1, 0
	}
	p.size = [2]int{1, s.layout.N[p.block]}
	if p.wave >= 0 {
		p.size[0] = s.layout.N[p.wave]
	}
	p.run = p.relaxPiece
	return p
}

// Sweeps returns the largest number of sweeps of a group, or 1 if groups do not pay off for this block.
func (p *TimeTiles) Sweeps() int { return p.tiling.Sweeps }

// Parts returns the number of parts of a group of that many sweeps, at most Sweeps().
func (p *TimeTiles) Parts(sweeps int) int {
	n := p.tiles(p.wholeAxis(1), sweeps)
	if pieces := p.pieces(0, sweeps); pieces > 1 {
		if n++; p.pieces(1, sweeps) > 1 {
			n++
		}
	}
	return n
}

// Points returns the number of point relaxations of a part.
func (p *TimeTiles) Points(part, sweeps int) int {
	p.setPart(part, sweeps)
	n := 0
	for i := range p.count() {
		wave, block, first, last := p.piece(i)
		for t := range sweeps {
			w0, w1 := wave.atSweep(t)
			for j := first; j < last; j++ {
				lo, hi := p.rows(block, j, t)
				n += max(0, hi-lo) * max(0, w1-w0)
			}
		}
	}
	return n * (p.sweep.layout.Points() / (p.size[0] * p.size[1]))
}

// Relax executes one part of a group of sweeps; parts must be executed in ascending order. a holds
// the old iterate. After the last part the new iterate is in a if sweeps is even, else in b. Both
// are padded arrays with equal ghosts. The executor shares the pieces of the part.
func (p *TimeTiles) Relax(part, sweeps int, a, b []float64, e Executor) {
	p.sweep.check(p.sweep.layout.Interior(), a, b)
	p.setPart(part, sweeps)
	p.arrays = [2][]float64{a, b}
	e.For(p.count(), p.run)
	p.arrays = [2][]float64{}
}

// RelaxMany executes Jacobi sweeps of the whole block in groups. The new iterate is in a if sweeps is even, else in
// b. The bits are those of single sweeps by Sweep.Relax. Both arrays must have equal ghosts.
func (p *TimeTiles) RelaxMany(a, b []float64, sweeps int, e Executor) {
	for sweeps > 0 {
		n := min(sweeps, p.Sweeps())
		for part := range p.Parts(n) {
			p.Relax(part, n, a, b, e)
		}
		if n%2 == 1 {
			a, b = b, a
		}
		sweeps -= n
	}
}

// setPart selects a part of a group and determines its phase.
func (p *TimeTiles) setPart(part, sweeps int) {
	p.sweeps, p.tile = sweeps, part
	p.phase = shrinking
	if n := p.tiles(p.wholeAxis(1), sweeps); part >= n {
		p.phase = between + part - n
	}
}

// count returns the number of pieces of the part that the executor may share.
func (p *TimeTiles) count() int {
	w, b := p.pieces(0, p.sweeps), p.pieces(1, p.sweeps)
	switch p.phase {
	case between:
		return (w - 1) * b
	case corners:
		return (w - 1) * (b - 1)
	}
	return w
}

// pieces returns the number of pieces of an axis (0: wave, 1: block) that have room to shrink.
func (p *TimeTiles) pieces(axis, sweeps int) int {
	return max(1, min(p.tiling.Pieces, p.size[axis]/max(1, 2*(sweeps-1))))
}

func (p *TimeTiles) wholeAxis(axis int) span { return span{hi: p.size[axis]} }

// shrinkingPiece returns piece i of n of an axis.
func (p *TimeTiles) shrinkingPiece(axis, i, n int) span {
	s := span{lo: p.size[axis] * i / n, hi: p.size[axis] * (i + 1) / n}
	if i > 0 {
		s.loStep = 1
	}
	if i < n-1 {
		s.hiStep = -1
	}
	return s
}

// growingGap returns the gap between pieces i and i+1 of n.
func (p *TimeTiles) growingGap(axis, i, n int) span {
	edge := p.size[axis] * (i + 1) / n
	return span{edge, edge, -1, 1}
}

// piece returns the spans of both axes that thread i processes, and the range of tiles of the block axis.
func (p *TimeTiles) piece(i int) (wave, block span, first, last int) {
	w, b := p.pieces(0, p.sweeps), p.pieces(1, p.sweeps)
	switch p.phase {
	case between:
		wave, block = p.growingGap(0, i/b, w), p.shrinkingPiece(1, i%b, b)
	case corners:
		wave, block = p.growingGap(0, i/(b-1), w), p.growingGap(1, i%(b-1), b)
	default:
		return p.shrinkingPiece(0, i, w), p.wholeAxis(1), p.tile, p.tile + 1
	}
	return wave, block, 0, p.tiles(block, p.sweeps)
}

// extent returns the length of a span in skewed coordinates.
func extent(s span, sweeps int) int { return s.hi - s.lo + (s.hiStep+1)*(sweeps-1) }

// tiles returns the number of parallelograms that cover a span.
func (p *TimeTiles) tiles(s span, sweeps int) int {
	if s.hi-s.lo <= p.tiling.Rows {
		return 1
	}
	return (extent(s, sweeps) + p.tiling.Rows - 1) / p.tiling.Rows
}

// rows returns the rows of tile j of a span in sweep t.
func (p *TimeTiles) rows(s span, j, t int) (lo, hi int) {
	lo, hi = s.atSweep(t)
	if n := p.tiles(s, p.sweeps); n > 1 {
		e := extent(s, p.sweeps)
		lo, hi = max(lo, s.lo+e*j/n-t), min(hi, s.lo+e*(j+1)/n-t)
	}
	return lo, hi
}

func (p *TimeTiles) relaxPiece(i int) {
	wave, block, first, last := p.piece(i)
	for j := first; j < last; j++ {
		p.relaxTile(wave, block, j)
	}
}

// relaxTile ascends the wave axis: plane z of sweep t follows plane z+1 of sweep t−1.
func (p *TimeTiles) relaxTile(wave, block span, j int) {
	last := p.sweeps - 1
	first := min(wave.lo, wave.lo+last*wave.loStep)
	end := max(wave.hi, wave.hi+last*wave.hiStep)
	box := p.sweep.layout.Interior()
	for z := first; z < end+last; z++ {
		for t := range p.sweeps {
			lo, hi := wave.atSweep(t)
			if z-t < lo || z-t >= hi {
				continue
			}
			box.Lo[p.block], box.Hi[p.block] = p.rows(block, j, t)
			if box.Hi[p.block] <= box.Lo[p.block] {
				continue
			}
			if p.wave >= 0 {
				box.Lo[p.wave], box.Hi[p.wave] = z-t, z-t+1
			}
			src := p.arrays[t&1]
			p.sweep.kernel.sweep(p.sweep, nil, p.arrays[1-t&1], src, src, box)
		}
	}
}
