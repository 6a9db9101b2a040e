package method

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Level is one grid of multigrid, or a block of one, with its arrays and operations. Every method
// writes only at the points of the box that it is given and reads the points around them. Its
// result at a point does not depend on the box.
type Level struct {
	Part  kernel.Part
	Sweep *kernel.Sweep
	// Values is a padded array. On level 0 it is the caller's, set before every cycle.
	Values []float64
	// Source, Lower and Upper are the fields that Sweep reads. Below level 0 all three are arrays.
	Source, Lower, Upper kernel.Field
	// Residual is the padded array of the residual that Restrict reads; blocks exchange its ghosts. If it is
	// nil, the residual is never stored (see SmoothRestrict), which requires all fine points in this block.
	Residual []float64
	// Transfer connects to the next coarser grid. It is nil on the coarsest.
	Transfer *kernel.Transfer
	// Truncation is the padded array of the codes of truncated stencil arms (see UpdateTruncated), nil on level 0.
	// Blocks exchange its ghosts for Restrict, as those of Residual.
	Truncation []float64

	operator      kernel.Operator
	parity        int
	below         bool
	nearestFine   [3][]int32       // own index nearest to each point −1 to N of the next coarser grid
	truncated     []truncatedPoint // in the order of rows; those of row (y, z) begin at rowStart[y + N·z]
	rowStart      []int32
	truncatedRows []bool   // rows of Truncation with nonzero codes
	contact       pointSet // points in contact that stay there
	truncatedSet  pointSet // points with truncated arms
	fused         fusedRestriction
	weights       *weights // nil selects linear interpolation
	edges         *Edges   // nil if the diffusion is constant or unknown
	coarser       *Level   // that Connect has connected
	allocate      func(n int) []float64
}

// LevelConfig describes a Level.
type LevelConfig struct {
	Part     kernel.Part
	Operator kernel.Operator
	Parity   int // colour of own point (0, 0, 0)
	// Source, Lower and Upper are the fields of level 0. Levels below allocate their own, Upper only if that
	// of level 0 is an array or finite.
	Source, Lower, Upper kernel.Field
	// Allocate allocates the arrays; make if nil.
	Allocate func(n int) []float64
}

// NewLevel returns level 0 or, if below, a level below it.
func NewLevel(c LevelConfig, below bool) (*Level, error) {
	layout := c.Part.Layout
	l := &Level{
		Part: c.Part, Source: c.Source, Lower: c.Lower, Upper: c.Upper, operator: c.Operator, parity: c.Parity,
		below: below, allocate: c.Allocate, contact: newPointSet(layout),
	}
	if l.allocate == nil {
		l.allocate = func(n int) []float64 { return make([]float64, n) }
	}
	l.fused.bind(l)
	if below {
		l.Values, l.Truncation = l.allocate(layout.Len()), l.allocate(layout.Len())
		l.Source = kernel.Field{Array: l.allocate(layout.Points())}
		l.Lower = kernel.Field{Array: l.allocate(layout.Points())}
		if hasUpper(l.Upper) {
			l.Upper = kernel.Field{Array: l.allocate(layout.Points())}
		}
		l.truncatedSet, l.truncatedRows = newPointSet(layout), make([]bool, layout.N[1]*layout.N[2])
		l.rowStart = make([]int32, len(l.truncatedRows)+1)
	}
	return l, l.makeSweep()
}

// Connect connects l to the next coarser level.
func (l *Level) Connect(coarse *Level) error {
	var err error
	if l.Transfer, err = kernel.NewTransfer(l.Part, coarse.Part, nil); err != nil {
		return err
	}
	l.coarser = coarse
	for a, n := range coarse.Part.Layout.N {
		l.nearestFine[a] = make([]int32, n+2)
		for i := range l.nearestFine[a] {
			j := i - 1
			near := NearestFine(coarse.Part.Lo[a]+j, l.Part.Global[a], coarse.Part.Global[a]) - l.Part.Lo[a]
			if j >= 0 && j < n && (near < 0 || near >= l.Part.Layout.N[a]) {
				return fmt.Errorf("method: axis %d: coarse point %d lies outside the fine block of %d points",
					a, j, l.Part.Layout.N[a])
			}
			l.nearestFine[a][i] = int32(near)
		}
	}
	return nil
}

// NearestFine returns the point of an axis of n points on or next to which point j of a coarser axis lies: the lower
// one of two at the same distance. −1 and the numbers of points denote the boundary.
func NearestFine(j, n, coarse int) int {
	at := (j + 1) * (n + 1)
	near := at/(coarse+1) - 1
	if 2*(at%(coarse+1)) > coarse+1 {
		near++
	}
	return near
}

// SetReference sets the values at the points of b to 0 projected between the obstacles.
func (l *Level) SetReference(b kernel.Box) {
	eachRow(l.Part.Layout, b, func(i, d int) {
		row := l.Values[i:][:b.Hi[0]-b.Lo[0]]
		for x := range row {
			row[x] = min(max(0, l.Lower.At(d+x)), l.Upper.At(d+x))
		}
	})
}

// Relax relaxes the points of one colour in b.
func (l *Level) Relax(colour int, omega float64, b kernel.Box) {
	l.Sweep.RelaxColour(l.Values, colour, omega, b)
	l.relaxTruncated(colour, b)
}

// Defect writes the residual at the points of b to Residual, for Restrict.
func (l *Level) Defect(b kernel.Box) {
	l.Sweep.Defect(l.Residual, l.Values, b)
	for i := range l.truncated {
		if w := &l.truncated[i]; b.Contains(w.at) {
			l.Residual[w.index] = l.defectTruncated(w)
		}
	}
}

// Prolong corrects the values at the fine points of b. It writes the old values to the padded array
// keep, if it is not nil.
func (l *Level) Prolong(coarse *Level, keep []float64, b kernel.Box) {
	if l.weights != nil {
		l.prolongWeighted(coarse, keep, b)
		return
	}
	l.Transfer.ProlongSaving(l.Values, keep, coarse.Values, l.Lower, l.Upper, b)
}

// Interpolate writes the interpolated values of the coarse level, including its ghosts, to the fine
// points of b. The next relaxation projects them between the obstacles.
func (l *Level) Interpolate(coarse *Level, b kernel.Box) {
	if l.weights != nil {
		l.weights.interpolate(coarse.Values, b, func(i, _ int, e float64) { l.Values[i] = e })
		return
	}
	eachRow(l.Part.Layout, b, func(i, _ int) { clear(l.Values[i:][:b.Hi[0]-b.Lo[0]]) })
	l.Transfer.Prolong(l.Values, coarse.Values, kernel.NoLower(), kernel.NoUpper(), b)
}

// SampleProblem samples the source and the obstacles at the coarse points of b: their values at the nearest fine
// points.
func (l *Level) SampleProblem(coarse *Level, b kernel.Box) {
	l.sample(coarse.Source.Array, l.Source, coarse.Part.Layout, b)
	l.sample(coarse.Lower.Array, l.Lower, coarse.Part.Layout, b)
	if coarse.Upper.Array != nil {
		l.sample(coarse.Upper.Array, l.Upper, coarse.Part.Layout, b)
	}
}

func (l *Level) sample(dst []float64, f kernel.Field, c kernel.Layout, b kernel.Box) {
	n := b.Hi[0] - b.Lo[0]
	near := l.nearestFine[0][b.Lo[0]+1:][:n]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			q := l.nearestTo([3]int{0, y, z})
			row, from := dst[c.Dense(b.Lo[0], y, z):][:n], l.Part.Layout.Dense(0, q[1], q[2])
			for i, x := range near {
				row[i] = f.At(from + int(x))
			}
		}
	}
}

// nearestTo returns the point nearest to a point or ghost of the next coarser level.
func (l *Level) nearestTo(coarse [3]int) (fine [3]int) {
	for a, c := range coarse {
		fine[a] = int(l.nearestFine[a][c+1])
	}
	return fine
}

// ClearTruncation removes all truncations: the level represents the problem itself, not a correction.
func (l *Level) ClearTruncation() {
	l.truncated = l.truncated[:0]
	clear(l.Truncation)
	clear(l.truncatedRows)
	clear(l.truncatedSet.words)
}

// ClearGhosts sets the ghosts to 0, the value of a correction on the boundary.
func (l *Level) ClearGhosts() {
	eachGhosts(l.Part.Layout, func(i, n int) { clear(l.Values[i : i+n]) })
}

// withGhosts returns the box of own points and ghosts.
func withGhosts(l kernel.Layout) kernel.Box {
	b := l.Interior()
	for a := range l.Dim {
		b.Lo[a], b.Hi[a] = -1, l.N[a]+1
	}
	return b
}

// sampleBoundary sets the coarse level's ghosts to the values at the nearest fine ghosts.
func (l *Level) sampleBoundary(coarse *Level) {
	c := coarse.Part.Layout
	g := withGhosts(c)
	eachPoint(g.Lo, g.Hi, func(p [3]int) {
		if !c.Interior().Contains(p) {
			q := l.nearestTo(p)
			coarse.Values[c.Index(p[0], p[1], p[2])] = l.Values[l.Part.Layout.Index(q[0], q[1], q[2])]
		}
	})
}

// RestrictResidual writes the restriction of Residual to the coarse points of b in dst, padded.
func (l *Level) RestrictResidual(dst []float64, b kernel.Box) {
	if l.weights != nil {
		l.weights.restrict(dst, l.Residual, b)
		return
	}
	l.Transfer.Restrict(dst, l.Residual, b)
}
