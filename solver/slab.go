package solver

import (
	"cmp"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// slab is a box of an assembled vector that is being judged, and the arrays for it, which
// serve one slab after the other.
type slab struct {
	block
	v      []float64 // padded: the vector's values
	image  []float64 // padded: A·v where it is asked for
	x, row []float64 // columns; room for a row
	bounds [2][]float64
}

// slabPoints is about how many points are judged at a time: three or four arrays of that
// length a thread are what Evaluate needs besides u.
const slabPoints = 1 << 19

// slabGroups is how many shares slabs are handed out in for each thread; each has arrays of
// its own, which are new pages.
const slabGroups = 2

// each calls f for every slab, on the executor, and done with what it gave.
func (j *judgement) each(e Executor, boxes []Box, f func(i int, w *slab) error, done func(i int, err error)) {
	groups := min(slabGroups*kernel.Workers(e), len(boxes))
	e.For(groups, func(g int) {
		var w slab
		for i := len(boxes) * g / groups; i < len(boxes)*(g+1)/groups; i++ {
			err := w.prepare(j, boxes[i])
			if err == nil {
				err = f(i, &w)
			}
			done(i, err)
		}
	})
}

// prepare goes on to another box.
func (w *slab) prepare(j *judgement, box Box) error {
	if err := w.move(j.p, box); err != nil {
		return err
	}
	j.remember(&w.block)
	m := w.layout.N[0]
	w.v, w.image = fit(w.v, w.layout.Len()), fit(w.image, w.layout.Len())
	if len(w.x) != m || j.p.Dimension == 1 {
		w.x, w.row = j.p.columns(box.Lo[0]+1, box.Hi[0]+1), make([]float64, m)
	}
	for i, f := range []kernel.Field{w.lower, w.upper} {
		w.bounds[i] = fit(w.bounds[i], m)
		fillValue(w.bounds[i], f.Value)
	}
	return nil
}

// obstacles are the obstacles' values along the row that begins at dense index d.
func (w *slab) obstacles(d int) (phi, psi []float64) {
	m := w.layout.N[0]
	phi, psi = w.bounds[0], w.bounds[1]
	if w.lower.Array != nil {
		phi = w.lower.Array[d:][:m]
	}
	if w.upper.Array != nil {
		psi = w.upper.Array[d:][:m]
	}
	return phi, psi
}

// touch is where values of a row are on an obstacle, begin ≤ i < end: how many on the lower
// one, and the first that is not between the two, −1 if all are.
type touch struct{ begin, end, lower, outside int }

func touching(row, phi, psi []float64) touch {
	t := touch{outside: -1}
	phi, psi = phi[:len(row)], psi[:len(row)]
	for i, u := range row {
		if lo, hi := phi[i], psi[i]; !(u > lo && u < hi) {
			t.meet(i, u, lo, hi)
		}
	}
	return t
}

// meet takes in a value that is not strictly between the obstacles.
func (t *touch) meet(i int, u, lo, hi float64) {
	if u == lo || u == hi {
		if t.end == 0 {
			t.begin = i
		}
		t.end = i + 1
	}
	if u == lo {
		t.lower++
	}
	if t.outside < 0 && (!(u >= lo) || !(u <= hi)) {
		t.outside = i
	}
}

// boxes are the slabs that are judged at a time.
func (j *judgement) boxes() []Box {
	p := j.p
	slow := p.Dimension - 1
	thick := max(1, cmp.Or(j.points, slabPoints)/(p.Points()/p.N[slow]))
	boxes := make([]Box, (p.N[slow]+thick-1)/thick)
	for i := range boxes {
		boxes[i] = Box{Hi: p.N}
		boxes[i].Lo[slow], boxes[i].Hi[slow] = i*thick, min((i+1)*thick, p.N[slow])
	}
	return boxes
}

// dense is the index of a slab's first point in a vector of the whole grid.
func (j *judgement) dense(b Box) int { return b.Lo[0] + j.p.N[0]*(b.Lo[1]+j.p.N[1]*b.Lo[2]) }

// remember adds what a time step began with to the source of a slab: slabs are whole
// planes of the slowest axis.
func (j *judgement) remember(b *block) {
	if j.before == nil {
		return
	}
	slow := j.p.Dimension - 1
	plane := j.p.Points() / j.p.N[slow]
	b.remember(j.before[plane*b.box.Lo[slow]:plane*b.box.Hi[slow]], j.dt)
}

// fill copies the vector's values at a slab's points and beside them to v; boundary data
// are there.
func (j *judgement) fill(b *block, v []float64) {
	p := j.p
	at := func(idx [3]int) int { return idx[0] - 1 + p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1)) }
	b.eachRow(func(row []float64, first [3]int) { copy(row, j.u[at(first):]) }, v, false)
	b.eachGhostRow(func(i, n int, first [3]int) bool {
		for a := range p.Dimension {
			if first[a] == 0 || first[a] == p.N[a]+1 {
				return true
			}
		}
		copy(v[i:][:n], j.u[at(first):])
		return true
	})
}
