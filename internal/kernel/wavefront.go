package kernel

// wavefront relaxes several colours of a whole block in one pass over memory, in place. Stage t is
// colour t mod 2 of sweep t/2; with Pass.Prepare as stage 0, colours begin at stage 1. Stage t runs t
// planes behind stage 0 along the slowest axis, and t rows below it in a tile. Tiles in ascending order
// then satisfy all dependencies (the hyperplanes of Lamport, CACM 17(2), 1974, and the skewed tiles of
// Wolfe, Supercomputing '89): each neighbour has completed the stage before and has not begun the
// stage after. Each thread processes one slab of planes, which shrinks by one plane per stage at a
// border with another slab; the wedges between the slabs are processed afterwards.
type wavefront struct {
	sweep         *Sweep
	u             []float64
	pass          Pass
	factor        float64
	stages        int
	prepareStages int // stages before the first colour: 1 with Pass.Prepare
	finalStage    int // index of the stage that calls Pass.Final, or −1
	slabs         int
	tiles         int
	rows          int // rows of a tile
	cache         int // bytes that a tile may occupy
	slab          func(i int)
	wedge         func(i int)
}

const (
	maxStages          = 8 // four sweeps; with more, arithmetic is the bottleneck
	minTileRows        = 12
	defaultSlabs       = 4    // for an executor without a Threads method
	tileShare          = 0.25 // part of the second-level cache
	slabPlanesPerStage = 2    // with fewer planes, most of a slab would belong to wedges
)

func newWavefront(s *Sweep) *wavefront {
	w := &wavefront{sweep: s, cache: int(tileShare * float64(cacheBytes()))}
	w.slab, w.wedge = w.relaxSlab, w.relaxWedge
	return w
}

// size returns the number of planes, and of rows per plane, that the stages traverse. In 2-D each
// plane is one row; in 1-D there is one plane.
func (w *wavefront) size() (planes, rows int) {
	l := &w.sweep.layout
	switch l.Dim {
	case 3:
		return l.N[2], l.N[1]
	case 2:
		return l.N[1], 1
	default:
		return 1, 1
	}
}

// relax executes a pass. Pass.Final is its last stage in 3-D. In 2-D Final may read rows before its
// own that another slab has not finished, so it gets a pass of its own.
func (w *wavefront) relax(u []float64, p *Pass, e Executor) {
	w.u, w.pass = u, *p
	w.factor = w.sweep.relaxationFactor(p.Omega)
	most := w.maxSweeps()
	done := p.Final != nil
	if w.prepareStages = 0; p.Prepare != nil && p.Sweeps > 0 {
		w.prepareStages = 1
	}
	for left := p.Sweeps; left > 0 || left == 0 && done; {
		n := min(left, most)
		left -= n
		w.stages, w.finalStage = 2*n+w.prepareStages, -1
		if left == 0 && done && (n == 0 || w.sweep.layout.Dim == 3) {
			w.finalStage = w.stages
			w.stages++
			left = -1
		}
		w.partition(e)
		if w.slabs == 1 {
			w.relaxSlab(0)
		} else {
			e.For(w.slabs, w.slab)
			e.For(w.slabs-1, w.wedge)
		}
		w.prepareStages = 0
	}
	w.u, w.pass = nil, Pass{}
}

// valuesPerRow returns the number of values that one row of a tile keeps in the cache in a pass of that many stages:
// the planes of u that the stages span, and one plane per stage of every other array.
func (w *wavefront) valuesPerRow(stages int) int {
	return w.sweep.layout.N[0] * (stages + 2 + stages*(w.sweep.arrays()-2))
}

// maxSweeps returns the number of sweeps that pay off in one pass.
func (w *wavefront) maxSweeps() int {
	if w.sweep.layout.Dim == 1 {
		return 1
	}
	stages, rows := maxStages, minTileRows
	if w.sweep.layout.Dim == 2 {
		rows = 1
	}
	for stages > 2 && 8*rows*w.valuesPerRow(stages) > w.cache {
		stages -= 2
	}
	return stages / 2
}

// partition chooses slabs and tiles.
func (w *wavefront) partition(e Executor) {
	planes, rows := w.size()
	w.slabs = max(1, min(Workers(e), planes/(slabPlanesPerStage*w.stages)))
	w.tiles, w.rows = 1, rows+w.stages
	if most := w.cache / (8 * w.valuesPerRow(w.stages)); rows > max(most, minTileRows) {
		high := rows + w.stages - 1 // in skewed coordinates
		w.tiles = max(1, high/max(most, minTileRows))
		w.rows = (high + w.tiles - 1) / w.tiles
	}
}

// relaxSlab executes the stages of slab i on the planes that need no other slab.
func (w *wavefront) relaxSlab(i int) {
	planes, _ := w.size()
	first, end := planes*i/w.slabs, planes*(i+1)/w.slabs
	if w.finalStage == 0 && w.sweep.layout.Dim == 2 {
		w.pass.Final(i, first, end, 0)
		return
	}
	low, high := 0, 0 // planes by which each stage shrinks at either end
	if i > 0 {
		low = 1
	}
	if i < w.slabs-1 {
		high = 1
	}
	for tile := range w.tiles {
		for z := first; z < end+w.stages-1; z++ {
			for t := range w.stages {
				if at := z - t; at >= first+t*low && at < end-t*high {
					w.relaxRows(i, tile, t, at)
				}
			}
		}
	}
}

// relaxWedge executes the remaining work between slabs i and i+1: t planes of each at stage t.
func (w *wavefront) relaxWedge(i int) {
	planes, _ := w.size()
	edge := planes * (i + 1) / w.slabs
	for tile := range w.tiles {
		for t := 1; t < w.stages; t++ {
			for at := edge - t; at < edge+t; at++ {
				w.relaxRows(i, tile, t, at)
			}
		}
	}
}

// relaxRows executes stage t of a tile in one plane.
func (w *wavefront) relaxRows(worker, tile, t, plane int) {
	n, z := &w.sweep.layout.N, plane
	lo, hi := max(0, tile*w.rows-t), min(n[1], (tile+1)*w.rows-t)
	if w.sweep.layout.Dim < 3 {
		lo, hi = plane, plane+1
		z = 0
	}
	if lo >= hi {
		return
	}
	if t == w.finalStage {
		w.pass.Final(worker, lo, hi, z)
		return
	}
	if t < w.prepareStages {
		w.pass.Prepare(lo, hi, z)
		return
	}
	colour := (t - w.prepareStages) & 1
	w.sweep.colourRows(w.u, colour, w.factor, 0, n[0], lo, hi, z)
	if w.pass.AfterColour != nil {
		w.pass.AfterColour(colour, lo, hi, z)
	}
}
