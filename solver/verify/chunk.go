package verify

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// chunk is a box of the vector under evaluation and its work arrays, which are reused for the next chunk.
type chunk struct {
	problem.Discretization
	v      []float64 // padded: the vector's values
	image  []float64 // padded: A·v
	x, row []float64 // x coordinates of the columns
	words  []uint64  // one bit per point of a row
	lambda []float64 // force on a row
	bounds [2][]float64
	before []float64 // dense: the values at the start of the time step
	sweep  *kernel.Sweep
}

// chunkPoints is about the number of points per chunk. Their arrays fit the second-level cache.
const chunkPoints = 1 << 16

// eachChunk calls f for every chunk on the executor. It returns the error of the first chunk that has one. Each thread
// allocates work arrays once: with more groups of chunks than threads, page faults took most of an evaluation.
func (j *evaluator) eachChunk(e problem.Executor, boxes []problem.Box, f func(i int, w *chunk) error) error {
	errs := make([]error, len(boxes))
	groups := min(kernel.Workers(e), len(boxes))
	e.For(groups, func(g int) {
		var w chunk
		for i := len(boxes) * g / groups; i < len(boxes)*(g+1)/groups; i++ {
			if errs[i] = w.prepare(j, boxes[i]); errs[i] == nil {
				errs[i] = f(i, &w)
			}
		}
	})
	return cmp.Or(errs...)
}

// prepare moves the chunk to another box and sets its values to the reference vector.
func (w *chunk) prepare(j *evaluator, box problem.Box) error {
	if err := w.Move(j.p, box); err != nil {
		return err
	}
	if j.before != nil {
		w.before = problem.Resized(w.before, w.Layout.Points())
		before := evaluator{p: j.p, u: j.before}
		at := 0
		before.eachRun(w.Box, func(u []float64) { at += copy(w.before[at:], u) })
		w.AddPrevious(w.before, j.dt)
	}
	m := w.Layout.N[0]
	w.v, w.image = problem.Resized(w.v, w.Layout.Len()), problem.Resized(w.image, w.Layout.Len())
	if len(w.x) != m || j.p.Dimension == 1 {
		w.x, w.row = j.p.Coordinates(0, box.Lo[0]+1, box.Hi[0]+1), make([]float64, m)
		w.words, w.lambda = make([]uint64, (m+63)/64), make([]float64, m)
	}
	for i, f := range []kernel.Field{w.Lower, w.Upper} {
		w.bounds[i] = problem.Resized(w.bounds[i], m)
		problem.Fill(w.bounds[i], f.Value)
	}
	var err error
	if w.sweep, err = w.Sweep(1); err != nil { // the step is not used: nothing is relaxed
		return err
	}
	return w.FillReference(w.v)
}

// obstacles returns the obstacles along the row that begins at dense index d.
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

// contactScan is the result of scanning a row for contact. Contact points lie in begin ≤ i < end. lower and
// upper count the points on either obstacle. outside is the first point that is not between the obstacles, or
// −1.
type contactScan struct{ begin, end, lower, upper, outside int }

// scanContact scans a row for contact. words provides one bit per value.
func scanContact(k *kernel.Kernel, words []uint64, row, phi, psi []float64) contactScan {
	t := contactScan{outside: -1}
	words = words[:(len(row)+63)/64]
	k.ScanContact(words, row, phi, psi)
	for w, bit := range words {
		for ; bit != 0; bit &= bit - 1 {
			i := 64*w + bits.TrailingZeros64(bit)
			u, lo, hi := row[i], phi[i], psi[i]
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
	}
	return t
}

// boxes returns the boxes of the chunks: whole planes of the slowest axis, or whole rows, as many along y as
// along z, if a few planes have too many points.
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

// eachRun calls f for the values of u at a chunk's points, one contiguous run at a time.
func (j *evaluator) eachRun(box problem.Box, f func(u []float64)) {
	n := (box.Hi[0] - box.Lo[0]) * (box.Hi[1] - box.Lo[1])
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		f(j.u[j.p.Dense([3]int{box.Lo[0] + 1, box.Lo[1] + 1, z + 1}):][:n])
	}
}

// fill copies the values at a block's points and interior face ghosts to v, which must hold the boundary data.
func (j *evaluator) fill(b *problem.Discretization, v []float64) {
	j.fillBox(b, v, b.Box)
	for face, boundary := range b.EachFace {
		if !boundary {
			j.fillBox(b, v, face)
		}
	}
}

// fillBox copies the values at the points of a box of the grid.
func (j *evaluator) fillBox(b *problem.Discretization, v []float64, box problem.Box) {
	b.EachRowOf(box, func(at, n int, first [3]int) bool {
		copy(v[at:][:n], j.u[j.p.Dense(first):])
		return true
	})
}
