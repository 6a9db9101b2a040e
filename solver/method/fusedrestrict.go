package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// fusedRestriction holds what a level that lies in one block needs to restrict in the same pass over memory
// as it relaxes.
type fusedRestriction struct {
	pass           kernel.Pass
	sums           []float64   // fine planes restricted along y and x
	scratch        [][]float64 // one per worker
	restrictRows   func(worker, lo, hi, z int)
	relaxTruncated func(colour, lo, hi, z int)

	correct func(lo, hi, z int)
	coarse  *Level // source of the correction in the next pass, or nil
	saved   []float64
}

// batchRows is the number of fine rows that are summed at once: their residual stays in the first-level cache.
const batchRows = 12

func (d *fusedRestriction) bind(l *Level) {
	d.restrictRows = l.sumRows
	d.relaxTruncated = func(colour, lo, hi, z int) {
		l.relaxTruncated(colour, l.rowsOf(lo, hi, z))
	}
	d.correct = func(lo, hi, z int) { l.Prolong(d.coarse, d.saved, l.rowsOf(lo, hi, z)) }
}

// rowsOf returns the box of whole rows of a plane.
func (l *Level) rowsOf(lo, hi, z int) kernel.Box {
	return kernel.Box{Lo: [3]int{0, lo, z}, Hi: [3]int{l.Part.Layout.N[0], hi, z + 1}}
}

// DeferProlong makes the next Smooth or SmoothRestrict, which must relax, execute Prolong in the same pass.
func (l *Level) DeferProlong(coarse *Level, keep []float64) {
	l.fused.coarse, l.fused.saved = coarse, keep
}

// Smooth executes red-black sweeps over the whole level, which must lie in this block alone. done,
// if not nil, is called for rows as soon as they are final (see kernel.Pass).
func (l *Level) Smooth(sweeps int, omega float64, e kernel.Executor, done func(worker, lo, hi, z int)) {
	p := &l.fused.pass
	*p = kernel.Pass{Omega: omega, Sweeps: sweeps, Final: done}
	if len(l.truncated) > 0 {
		p.AfterColour = l.fused.relaxTruncated
	}
	if l.fused.coarse != nil {
		p.Prepare = l.fused.correct
	}
	l.Sweep.RedBlackPass(l.Values, p, e)
	l.fused.coarse, l.fused.saved = nil, nil
}

// SmoothRestrict executes red-black sweeps, possibly none, and the part of Restrict that reads all
// fine points: the sums of the residual and the scan for contact.
func (l *Level) SmoothRestrict(sweeps int, omega float64, e kernel.Executor) {
	d := &l.fused
	if d.sums == nil {
		d.sums = l.allocate(l.Transfer.PartialLen())
	}
	for n := kernel.Workers(e); len(d.scratch) < n; {
		d.scratch = append(d.scratch, make([]float64, l.scratchLen()))
	}
	l.Smooth(sweeps, omega, e, d.restrictRows)
}

// scratchLen returns the length of a worker's scratch memory: the fine rows of a batch, the rows
// before it that its coarse rows need, and one more.
func (l *Level) scratchLen() int {
	most, n := 0, l.Part.Layout.N
	for lo := 0; lo < n[1]; lo++ {
		hi := min(lo+batchRows, n[1])
		_, _, first := l.Transfer.RestrictedRows(lo, hi)
		most = max(most, hi-first)
	}
	return (most + 1) * n[0]
}

// sumRows sums the residual of rows [lo, hi) of a plane and marks their points in contact.
func (l *Level) sumRows(worker, lo, hi, z int) {
	n := l.Part.Layout.N[0]
	room := l.fused.scratch[worker]
	for ; lo < hi; lo += batchRows {
		end := min(lo+batchRows, hi)
		_, _, first := l.Transfer.RestrictedRows(lo, end)
		rows := room[:(end-first)*n]
		l.Sweep.DefectRows(rows, l.Values, first, end, z)
		walled := l.truncatedIn(first, end, z)
		for i := range walled {
			w := &walled[i]
			rows[(w.at[1]-first)*n+w.at[0]] = l.defectTruncated(w)
		}
		l.Sweep.Kernel().MarkHeld(l.contact.from(lo, z), l.contact.row, rows[(lo-first)*n:], n)
		l.Transfer.RestrictRows(l.fused.sums, rows, room[len(rows):], lo, end, z)
	}
}

// ScanContact marks the points of the rows of b that are in contact or truncated, from Residual and Truncation. The
// rows must be whole except for their ghosts. b may include ghosts of the other axes if they were exchanged.
func (l *Level) ScanContact(b kernel.Box) {
	n := l.Part.Layout.N[0]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i := l.Part.Layout.Index(0, y, z)
			words := l.contact.of(y, z)
			clear(words)
			l.Sweep.Kernel().MarkHeld(words[1:], len(words), l.Residual[i:i+n], n)
			for _, x := range [2]int{-1, n} {
				if r := l.Residual[i+x]; r == 0 && math.Signbit(r) {
					setBit(words, x)
				}
			}
			if l.Truncation == nil {
				continue
			}
			words = l.truncatedSet.of(y, z)
			clear(words)
			for x, w := range l.Truncation[i-1 : i+n+1] {
				if w != 0 {
					setBit(words, x-1)
				}
			}
		}
	}
}

// Restrict computes the correction problem at the coarse points of b (see the stage Restrict). It reads the results
// of SmoothRestrict or, if the level is distributed, Residual and the results of ScanContact. The coarse obstacles
// keep the nearest fine point admissible. Where that point is in contact, the coarse point is held: otherwise the
// correction would lift the fine point off, be projected away and return in the next cycle. UpdateTruncated of the
// coarse level must be called when all boxes are complete.
func (l *Level) Restrict(coarse *Level, b kernel.Box) {
	if l.weights != nil {
		l.weights.restrict(coarse.Values, l.Residual, b)
	} else if l.Residual != nil {
		l.Transfer.Restrict(coarse.Values, l.Residual, b)
	} else {
		l.Transfer.RestrictPlanes(coarse.Values, l.fused.sums, b)
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			l.restrictRow(coarse, b.Lo[0], b.Hi[0], y, z)
			l.truncateRow(coarse, b.Lo[0], b.Hi[0], y, z)
		}
	}
}

// pressingSource is a source that holds a point on its lower obstacle 0 where no upper obstacle can be set to 0.
const pressingSource = -0x1p900

// restrictRow computes source, obstacles and initial values of the coarse points [x0, x1) of a row.
func (l *Level) restrictRow(coarse *Level, x0, x1, y, z int) {
	fine, c := l.Part.Layout, coarse.Part.Layout
	fy, fz := int(l.nearestFine[1][y+1]), int(l.nearestFine[2][z+1])
	i, d, n := c.Index(x0, y, z), c.Dense(x0, y, z), x1-x0
	values, source := coarse.Values[i:][:n], coarse.Source.Array[d:][:n]
	for x, v := range values {
		source[x] = -v
	}
	clear(values)
	u, at, from := l.Values[fine.Index(0, fy, fz):][:fine.N[0]], l.nearestFine[0][x0+1:][:n], fine.Dense(0, fy, fz)
	obstacleDistance(coarse.Lower.Array[d:][:n], u, l.Lower, from, at)
	upper := coarse.Upper.Array
	if upper != nil {
		upper = upper[d:][:n]
		obstacleDistance(upper, u, l.Upper, from, at)
	}
	words := l.contact.of(fy, fz)
	if s := emptySpan.join(words); s.first > s.last {
		return
	}
	for x, fx := range at {
		if words[(fx+64)>>6]>>((fx+64)&63)&1 == 0 {
			continue
		}
		if coarse.Lower.Array[d+x] = 0; upper != nil {
			upper[x] = 0
		} else {
			source[x] = pressingSource
		}
	}
}

// obstacleDistance writes the distance of an obstacle, whose row begins at from, from u at some points.
func obstacleDistance(dst, u []float64, obstacle kernel.Field, from int, at []int32) {
	for x, fx := range at {
		dst[x] = obstacle.At(from+int(fx)) - u[fx]
	}
}

// truncateRow computes the truncation of the coarse points [x0, x1) of a row. It examines only
// points whose arms pass rows with contact or truncated points.
func (l *Level) truncateRow(coarse *Level, x0, x1, y, z int) {
	row := y + coarse.Part.Layout.N[1]*z
	i := coarse.Part.Layout.Index(x0, y, z)
	codes := coarse.Truncation[i:][:x1-x0]
	whole := x1-x0 == coarse.Part.Layout.N[0] // else the row has pieces in other boxes
	if !whole || coarse.truncatedRows[row] {
		clear(codes)
	}
	marked := l.markedSpan(y, z)
	if marked.first > marked.last {
		if whole {
			coarse.truncatedRows[row] = false
		}
		return
	}
	s, some := l.newIsolatedContacts(coarse), false
	fy, fz := int(l.nearestFine[1][y+1]), int(l.nearestFine[2][z+1])
	for x := x0; x < x1; x++ {
		if int(l.nearestFine[0][x]) > marked.last || int(l.nearestFine[0][x+2]) < marked.first {
			continue
		}
		if p := [3]int{int(l.nearestFine[0][x+1]), fy, fz}; !l.contact.has(p) {
			at := [3]int{x, y, z}
			lo, hi := l.cell(at)
			if l.cellEmpty(lo, hi) {
				continue
			}
			codes[x-x0] = float64(l.truncationAt(coarse, at, p) | s.code(at, p, lo, hi)<<reactionShift)
			some = some || codes[x-x0] != 0
		}
	}
	if whole {
		coarse.truncatedRows[row] = some
	}
}

// markedSpan returns the span of marked points in the rows between the neighbours of row (y, z) of
// the next coarser grid.
func (l *Level) markedSpan(y, z int) span {
	s := emptySpan
	for b := int(l.nearestFine[2][z]) + 1; b < int(l.nearestFine[2][z+2]); b++ {
		for a := int(l.nearestFine[1][y]) + 1; a < int(l.nearestFine[1][y+2]); a++ {
			s = s.join(l.contact.of(a, b))
			if l.Truncation != nil {
				s = s.join(l.truncatedSet.of(a, b))
			}
		}
	}
	return s
}
