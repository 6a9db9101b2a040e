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
	// Truncation is the padded array of the codes of truncated stencil arms below level 0, or nil (see
	// UpdateTruncated). Blocks exchange its ghosts for Restrict, as those of Residual.
	Truncation []float64

	operator      kernel.Operator
	kernel        *kernel.Kernel
	parity        int
	below         bool
	samplePoints  [3][]samplePoint // of the own points of the next coarser grid
	nearestFine   [3][]int32       // fine index nearest to each point −1 to N of the next coarser grid
	truncated     []truncatedPoint // in the order of rows; those of row (y, z) begin at rowStart[y + N·z]
	rowStart      []int32
	truncatedRows []bool   // rows of Truncation with nonzero codes
	contact       pointSet // points in contact that stay there
	truncatedSet  pointSet // points with truncated arms
	fused         fusedRestriction
	weights       *weights // nil selects linear interpolation
	edges         *Edges   // nil if the diffusion is constant or unknown
	allocate      func(n int) []float64
}

// samplePoint is the position of a coarse point on a fine axis: the part weight of the way from own
// index low to high. nearest is the closer of the two.
type samplePoint struct {
	low, high, nearest int
	weight             float64
}

// LevelConfig describes a Level.
type LevelConfig struct {
	Part     kernel.Part
	Operator kernel.Operator
	Parity   int            // colour of own point (0, 0, 0)
	Kernel   *kernel.Kernel // the fastest variant if nil
	Truncate bool           // below level 0: truncate stencil arms at points in contact
	// Source, Lower and Upper are the fields of level 0. Levels below allocate their own, Upper only if that
	// of level 0 is an array or finite.
	Source, Lower, Upper kernel.Field
	// Allocate allocates the arrays; make if nil.
	Allocate func(n int) []float64
}

// NewLevel returns level 0 or, if below, a level below it.
func NewLevel(c LevelConfig, below bool) (*Level, error) {
	l := &Level{Part: c.Part, Source: c.Source, Lower: c.Lower, Upper: c.Upper}
	allocate := c.Allocate
	if allocate == nil {
		allocate = func(n int) []float64 { return make([]float64, n) }
	}
	l.allocate = allocate
	if below {
		l.Values = allocate(c.Part.Layout.Len())
		if c.Truncate {
			l.Truncation = allocate(c.Part.Layout.Len())
		}
		for _, f := range []*kernel.Field{&l.Source, &l.Lower, &l.Upper} {
			if f != &l.Upper || hasUpper(*f) {
				*f = kernel.Field{Array: allocate(c.Part.Layout.Points())}
			}
		}
	}
	l.operator, l.below = c.Operator, below
	l.parity, l.kernel = c.Parity, c.Kernel
	l.contact = newPointSet(c.Part.Layout)
	l.fused.bind(l)
	if l.Truncation != nil {
		n := c.Part.Layout.N
		l.truncatedSet = newPointSet(c.Part.Layout)
		l.rowStart, l.truncatedRows = make([]int32, n[1]*n[2]+1), make([]bool, n[1]*n[2])
	}
	return l, l.makeSweep()
}

// Connect connects l to the next coarser level.
func (l *Level) Connect(coarse *Level, k *kernel.Kernel) error {
	var err error
	if l.Transfer, err = kernel.NewTransfer(l.Part, coarse.Part, k); err != nil {
		return err
	}
	for a := range 3 {
		nf, nc := l.Part.Global[a], coarse.Part.Global[a]
		l.samplePoints[a] = make([]samplePoint, coarse.Part.Layout.N[a])
		for j := range l.samplePoints[a] {
			p := &l.samplePoints[a][j]
			at := (coarse.Part.Lo[a] + j + 1) * (nf + 1)
			rest := at % (nc + 1)
			p.low = at/(nc+1) - 1 - l.Part.Lo[a]
			p.high, p.nearest = p.low, p.low
			p.weight = float64(rest) / float64(nc+1)
			if rest != 0 {
				p.high++
			}
			if 2*rest > nc+1 {
				p.nearest++
			}
			if p.nearest < 0 || p.nearest >= l.Part.Layout.N[a] {
				return fmt.Errorf("method: axis %d: coarse point %d lies outside the fine block of %d points",
					a, j, l.Part.Layout.N[a])
			}
		}
		l.nearestFine[a] = make([]int32, coarse.Part.Layout.N[a]+2)
		for j := range l.nearestFine[a] {
			l.nearestFine[a][j] = int32(l.nearest(coarse, a, j-1))
		}
	}
	return nil
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

// HasTruncated reports whether any point of the level has truncated arms. If none has, the kernels do all
// the work of Relax and Defect.
func (l *Level) HasTruncated() bool { return len(l.truncated) > 0 }

// Defect writes the residual at the points of b to Residual, for Restrict.
func (l *Level) Defect(b kernel.Box) {
	l.Sweep.Defect(l.Residual, l.Values, b)
	for i := range l.truncated {
		if w := &l.truncated[i]; contains(b, w.at) {
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
		l.interpolateWeighted(coarse, b)
		return
	}
	eachRow(l.Part.Layout, b, func(i, _ int) { clear(l.Values[i:][:b.Hi[0]-b.Lo[0]]) })
	l.Transfer.Prolong(l.Values, coarse.Values, kernel.NoLower(), kernel.NoUpper(), b)
}

// SampleProblem samples the source and the obstacles at the coarse points of b, with linear
// interpolation between fine points.
func (l *Level) SampleProblem(coarse *Level, b kernel.Box) {
	l.sample(coarse.Source.Array, l.Source, coarse.Part.Layout, b)
	l.sample(coarse.Lower.Array, l.Lower, coarse.Part.Layout, b)
	if coarse.Upper.Array != nil {
		l.sample(coarse.Upper.Array, l.Upper, coarse.Part.Layout, b)
	}
}

func (l *Level) sample(dst []float64, f kernel.Field, c kernel.Layout, b kernel.Box) {
	fine := l.Part.Layout
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			row := dst[c.Dense(b.Lo[0], y, z):][:b.Hi[0]-b.Lo[0]]
			if f.Array == nil {
				for i := range row {
					row[i] = f.Value
				}
				continue
			}
			along := l.samplePoints[0][b.Lo[0]:b.Hi[0]]
			ny, nz := l.samplePoints[1][y], l.samplePoints[2][z]
			if ny.weight == 0 && nz.weight == 0 && along[0].weight == 0 && along[len(along)-1].weight == 0 &&
				l.Transfer.Nested(0) {
				from := f.Array[fine.Dense(0, ny.low, nz.low):]
				for i, p := range along {
					row[i] = from[p.low]
				}
				continue
			}
			for i := range row {
				row[i] = l.between(f.Array, fine, [3]int{b.Lo[0] + i, y, z})
			}
		}
	}
}

// between interpolates a dense field linearly at own point at of the coarser level. An end of
// weight 0 is not read, because the field may be infinite there.
func (l *Level) between(field []float64, fine kernel.Layout, at [3]int) float64 {
	x, y, z := l.samplePoints[0][at[0]], l.samplePoints[1][at[1]], l.samplePoints[2][at[2]]
	along := func(y, z int) float64 {
		return mix(field[fine.Dense(x.low, y, z)], field[fine.Dense(x.high, y, z)], x.weight)
	}
	plane := func(z int) float64 { return mix(along(y.low, z), along(y.high, z), y.weight) }
	return mix(plane(z.low), plane(z.high), z.weight)
}

func mix(low, high, weight float64) float64 {
	if weight == 0 || low == high {
		return low
	}
	return float64((1-weight)*low) + float64(weight*high)
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

// SampleBoundary samples the coarse level's boundary data on its faces from the fine level. The
// values on edges and corners, which only interpolation reads, are averaged.
func (l *Level) SampleBoundary(coarse *Level) {
	c := coarse.Part.Layout
	for a := range c.Dim {
		for _, at := range []int{-1, c.N[a]} {
			face := c.Interior()
			face.Lo[a], face.Hi[a] = at, at+1
			l.Transfer.Inject(coarse.Values, l.Values, face)
		}
	}
	coarse.FillEdgeGhosts()
}

// FillEdgeGhosts sets the ghosts on edges to the mean of the two adjacent ghosts on faces, then
// those on corners to the mean of the three adjacent ghosts on edges.
func (l *Level) FillEdgeGhosts() {
	c := l.Part.Layout
	g := withGhosts(c)
	for outside := 2; outside <= c.Dim; outside++ {
		for z := g.Lo[2]; z < g.Hi[2]; z++ {
			for y := g.Lo[1]; y < g.Hi[1]; y++ {
				if y >= 0 && y < c.N[1] && z >= 0 && z < c.N[2] {
					continue // a row of own points
				}
				for x := g.Lo[0]; x < g.Hi[0]; x++ {
					l.fillEdge([3]int{x, y, z}, outside)
				}
			}
		}
	}
}

// fillEdge sets the ghost at if it is outside along that many axes.
func (l *Level) fillEdge(at [3]int, outside int) {
	c := l.Part.Layout
	sum, count := 0.0, 0
	for a := range c.Dim {
		near := at
		switch at[a] {
		case -1:
			near[a] = 0
		case c.N[a]:
			near[a] = c.N[a] - 1
		default:
			continue
		}
		sum += l.Values[c.Index(near[0], near[1], near[2])]
		count++
	}
	if count == outside {
		l.Values[c.Index(at[0], at[1], at[2])] = sum / float64(count)
	}
}
