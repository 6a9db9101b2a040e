package verify

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// slab is a box of an assembled vector that is being judged, and the arrays for it, which
// serve one slab after the other.
type chunk struct {
	problem.Discretization
	v      []float64 // padded: the vector's values
	image  []float64 // padded: A·v where it is asked for
	x, row []float64 // columns; room for a row
	words  []uint64  // room for a bit for each point of a row
	lambda []float64 // room for the force on a row
	bounds [2][]float64
	before []float64 // dense: what a time step began with
}

// slabPoints is about how many points are judged at a time: the arrays for them stay in a
// second-level cache from one pass to the next.
const chunkPoints = 1 << 16

// slabGroups is how many shares slabs are handed out in for each thread; each has arrays of
// its own, which are new pages.
const groupsPerThread = 4

// each calls f for every slab, on the executor, and done with what it gave.
func (j *evaluator) eachChunk(e problem.Executor, boxes []problem.Box, f func(i int, w *chunk) error, done func(i int, err error)) {
	groups := min(groupsPerThread*kernel.Workers(e), len(boxes))
	e.For(groups, func(g int) {
		var w chunk
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
func (w *chunk) prepare(j *evaluator, box problem.Box) error {
	if err := w.Move(j.p, box); err != nil {
		return err
	}
	w.addPrevious(j)
	m := w.Layout.N[0]
	w.v, w.image = problem.Fit(w.v, w.Layout.Len()), problem.Fit(w.image, w.Layout.Len())
	if len(w.x) != m || j.p.Dimension == 1 {
		w.x, w.row = j.p.Coordinates(0, box.Lo[0]+1, box.Hi[0]+1), make([]float64, m)
		w.words, w.lambda = make([]uint64, (m+63)/64), make([]float64, m)
	}
	for i, f := range []kernel.Field{w.Lower, w.Upper} {
		w.bounds[i] = problem.Fit(w.bounds[i], m)
		problem.FillValue(w.bounds[i], f.Value)
	}
	return nil
}

// obstacles are the obstacles' values along the row that begins at dense index d.
func (w *chunk) obstacles(d int) (phi, psi []float64) {
	m := w.Layout.N[0]
	phi, psi = w.bounds[0], w.bounds[1]
	if w.Lower.Array != nil {
		phi = w.Lower.Array[d:][:m]
	}
	if w.Upper.Array != nil {
		psi = w.Upper.Array[d:][:m]
	}
	return phi, psi
}

// touch is where values of a row are on an obstacle, begin ≤ i < end: how many on the lower
// one and on the upper one, and the first that is not between the two, −1 if all are.
type contactScan struct{ begin, end, lower, upper, outside int }

// touching looks at a row; words are room for a bit a value.
func scanContact(k *kernel.Kernel, words []uint64, row, phi, psi []float64) contactScan {
	t := contactScan{outside: -1}
	words = words[:(len(row)+63)/64]
	k.ScanContact(words, row, phi, psi)
	for w, bit := range words {
		for ; bit != 0; bit &= bit - 1 {
			i := 64*w + bits.TrailingZeros64(bit)
			t.add(i, row[i], phi[i], psi[i])
		}
	}
	return t
}

// meet takes in a value that is not strictly between the obstacles.
func (t *contactScan) add(i int, u, lo, hi float64) {
	if u == lo || u == hi {
		if t.end == 0 {
			t.begin = i
		}
		t.end = i + 1
	}
	if u == lo {
		t.lower++
	}
	if u == hi {
		t.upper++
	}
	if t.outside < 0 && (!(u >= lo) || !(u <= hi)) {
		t.outside = i
	}
}

// boxes are the slabs that are judged at a time: whole planes of the slowest axis, or
// whole rows, as many along y as along z, where few planes would be too many points.
func (j *evaluator) boxes() []problem.Box {
	n, size := j.p.N, cmp.Or(j.points, chunkPoints)
	slow := j.p.Dimension - 1
	thick := n
	thick[slow] = max(1, size/(j.p.Points()/n[slow]))
	if side := max(1, int(math.Sqrt(float64(size/n[0])))); slow == 2 && side < n[1] {
		thick[1], thick[2] = side, side
	}
	var boxes []problem.Box
	for z := 0; z < n[2]; z += thick[2] {
		for y := 0; y < n[1]; y += thick[1] {
			for x := 0; x < n[0]; x += thick[0] {
				boxes = append(boxes, problem.Box{
					Lo: [3]int{x, y, z},
					Hi: [3]int{min(x+thick[0], n[0]), min(y+thick[1], n[1]), min(z+thick[2], n[2])},
				})
			}
		}
	}
	return boxes
}

// dense is the index of a box's first point in a vector of the whole grid.
func (j *evaluator) dense(b problem.Box) int { return b.Lo[0] + j.p.N[0]*(b.Lo[1]+j.p.N[1]*b.Lo[2]) }

// eachStretch visits u at a slab's points, as much at a time as lies together in memory.
func (j *evaluator) eachRun(box problem.Box, f func(u []float64)) {
	n := (box.Hi[0] - box.Lo[0]) * (box.Hi[1] - box.Lo[1])
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		box.Lo[2] = z
		f(j.u[j.dense(box):][:n])
	}
}

// remember adds what a time step began with to the source of a slab.
func (w *chunk) addPrevious(j *evaluator) {
	if j.before == nil {
		return
	}
	w.before = problem.Fit(w.before, w.Layout.Points())
	before := evaluator{p: j.p, u: j.before}
	at := 0
	before.eachRun(w.Box, func(u []float64) { at += copy(w.before[at:], u) })
	w.Discretization.Remember(w.before, j.dt)
}

// fill copies the vector's values at a slab's points and beside them to v; boundary data
// are there.
func (j *evaluator) fill(b *problem.Discretization, v []float64) {
	j.fillOwn(b, v, b.Box)
	j.fillGhosts(b, v)
}

// fillOwn copies the values at the points of a box of the grid.
func (j *evaluator) fillOwn(b *problem.Discretization, v []float64, box problem.Box) {
	b.EachRowOf(box, func(at, n int, first [3]int) bool {
		copy(v[at:][:n], j.u[first[0]-1+j.p.N[0]*(first[1]-1+j.p.N[1]*(first[2]-1)):])
		return true
	})
}

// fillGhosts copies those beside the slab.
func (j *evaluator) fillGhosts(b *problem.Discretization, v []float64) {
	b.EachFace(func(face problem.Box, boundary bool) bool {
		if !boundary {
			j.fillOwn(b, v, face)
		}
		return true
	})
}
