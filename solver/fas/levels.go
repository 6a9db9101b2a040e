package fas

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// levels holds the grids of one peer: those of its region, and the replicated one. On every grid the unknown is the
// solution itself, not a correction (the full approximation scheme of Brandt and Cryer, 1983).
type levels struct {
	plan   *plan
	parts  []part          // by level, 0 to depth
	grids  []*method.Level // Values of level depth are the restricted values of level depth−1
	ops    []kernel.Operator
	moved  [][]float64 // by level from 1: the change of its values since they were restricted, padded
	omega  float64
	theta  float64 // factor of the corrections
	coarse replicated
	own    kernel.Box // own points of the replicated level, in the indices of parts[depth]
	rows   []rows     // by level, 0 to depth−1
}

// newLevels makes the grids of a box. block is the discretization on level 0 of its region.
func newLevels(g *plan, own problem.Box, block *problem.Discretization, o method.Options) (*levels, error) {
	v := &levels{plan: g, moved: make([][]float64, g.depth+1), omega: smoothingOmega, theta: 1}
	if !block.Problem.Symmetric() {
		v.omega = 1
	}
	for l := 0; l <= g.depth; l++ {
		p, err := g.part(own, l)
		if err != nil {
			return nil, err
		}
		v.parts = append(v.parts, p)
	}
	for l := range v.parts {
		if err := v.addGrid(l, block, o.Allocate); err != nil {
			return nil, err
		}
	}
	for l := range g.depth {
		v.rows = append(v.rows, newRows(g, l, &v.parts[l], &v.parts[l+1]))
	}
	v.own = g.ownCoarse(own).From(v.parts[g.depth].Lo)
	v.setEdges(block.Problem)
	return v, v.coarse.init(g, block, o)
}

// addGrid makes the grid of level l.
func (v *levels) addGrid(l int, block *problem.Discretization, allocate func(int) []float64) error {
	p, q := v.parts[l], block.Problem
	c := method.LevelConfig{
		Part: p.Part, Operator: block.Operator, Source: block.Source, Lower: block.Lower, Upper: block.Upper,
		Parity: (p.Lo[0] + p.Lo[1] + p.Lo[2]) & 1, Allocate: allocate,
	}
	n := p.Layout.Points()
	if l > 0 {
		var err error
		h := &v.plan.hierarchy
		e := q.CoarseEdges(h, l, grownLow(p, h.Dim), grownHigh(p, h.Dim))
		c.Operator, err = q.CoarseOperatorIn(problem.Box{Hi: q.N}, h.Grids[l], p.box(), e, [kernel.Directions][]float64{})
		if err != nil {
			return err
		}
		c.Source, c.Lower = kernel.Field{Array: allocate(n)}, kernel.Field{Array: allocate(n)}
		c.Upper = kernel.NoUpper()
		if q.Upper != nil {
			c.Upper = kernel.Field{Array: allocate(n)}
		}
		if err := v.plan.sample(q, l, p.box(), c.Source.Array, c.Lower.Array, c.Upper.Array); err != nil {
			return err
		}
		v.moved[l] = allocate(p.Layout.Len())
	}
	grid, err := method.NewLevel(c, false)
	if err != nil {
		return err
	}
	grid.Values, grid.Residual = allocate(p.Layout.Len()), allocate(p.Layout.Len())
	v.grids, v.ops = append(v.grids, grid), append(v.ops, c.Operator)
	if l > 0 {
		return v.grids[l-1].Connect(grid)
	}
	return nil
}

// edgeReach is the number of points around a block on whose edges its interpolation depends.
const edgeReach = 4

func grownLow(p part, dim int) (lo [3]int) {
	for a := range dim {
		lo[a] = max(-1, p.Lo[a]-edgeReach)
	}
	return lo
}

func grownHigh(p part, dim int) (hi [3]int) {
	for a := range 3 {
		if hi[a] = 1; a < dim {
			hi[a] = min(p.Global[a]+1, p.Lo[a]+p.Layout.N[a]+edgeReach)
		}
	}
	return hi
}

// setEdges makes transfers follow the diffusion where it varies.
func (v *levels) setEdges(p *problem.Problem) {
	if p.Diffusion.Constant() {
		return
	}
	h := &v.plan.hierarchy
	for l, g := range v.grids {
		g.SetEdges(p.CoarseEdges(h, l, grownLow(v.parts[l], h.Dim), grownHigh(v.parts[l], h.Dim)))
	}
}

// sample evaluates source and obstacles at the points of a box of level l, as inject does with values: where they do not
// lie on points of the finest grid, as means of these. So values that touch an obstacle there touch it here.
func (g *plan) sample(p *problem.Problem, l int, b problem.Box, source, lower, upper []float64) error {
	clear(source)
	clear(lower)
	clear(upper)
	return g.means(p, l, b, func(d int, weight float64, q problem.Point) error {
		phi, psi := p.Obstacles(q)
		f := p.Source.At(q)
		source[d] += float64(weight * f)
		if lower[d] += float64(weight * phi); upper != nil {
			upper[d] += float64(weight * psi)
		}
		if math.IsNaN(f) || math.IsNaN(phi) || math.IsNaN(psi) {
			return p.Errorf("source %v, obstacles %v and %v at %v", f, phi, psi, q)
		}
		return nil
	})
}

// means calls add for the points of the finest grid whose weighted mean is a value at point d of a box of level l.
func (g *plan) means(
	p *problem.Problem, l int, b problem.Box, add func(d int, weight float64, q problem.Point) error,
) error {
	var axes [3][][]weighted
	for a := range axes {
		for i := b.Lo[a]; i < b.Hi[a]; i++ {
			axes[a] = append(axes[a], g.finest(l, a, i))
		}
	}
	for d, idx := range b.Each {
		for _, z := range axes[2][idx[2]-1-b.Lo[2]] {
			for _, y := range axes[1][idx[1]-1-b.Lo[1]] {
				for _, x := range axes[0][idx[0]-1-b.Lo[0]] {
					if err := add(d, x.weight*y.weight*z.weight, p.At(x.at+1, y.at+1, z.at+1)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// relax makes one projected red-black sweep on level l.
func (v *levels) relax(l int) {
	for colour := range 2 {
		v.grids[l].Relax(colour, v.omega, v.parts[l].inner)
	}
}

// smoothingOmega is the factor of the sweeps for a symmetric A. With strong flows it would increase the residual.
const smoothingOmega = 1.15

// down computes the problem of level l+1 from the values of level l:
//
//	b = A·I·u + R·r − λ,
//
// where I is injection, linear interpolation where points of the levels do not coincide, R full weighting and r the
// residual f − A·u without its part in contact. λ = A·u − f at the
// points in contact below coarse points makes contact strict there: without it the coarse problem cannot tell a point
// that is pressed on the obstacle from one that rests on it, and contact flips from step to step. On the replicated
// level, only the own points are computed.
func (v *levels) down(l int) {
	fine, coarse := v.grids[l], v.grids[l+1]
	fine.Defect(v.parts[l].inner)
	v.inject(l, coarse.Values)
	b := v.parts[l+1].inner
	if l+1 == v.plan.depth {
		b = v.own
	}
	if b.Empty() {
		return
	}
	coarse.Sweep.Apply(v.moved[l+1], coarse.Values, b)
	fine.RestrictResidual(coarse.Residual, b)
	source := coarse.Source.Array
	v.eachRow(l, b, func(r *row) {
		for x := range r.n {
			i := r.at + x
			b := v.moved[l+1][i] - coarse.Residual[i]
			if r.held(x, fine.Residual) {
				b -= v.pressure(l, [3]int{r.nearest(x), r.near.first[1], r.near.first[2]})
			}
			source[r.dense+x] = b
		}
		if l+1 == v.plan.depth {
			q := r.grid
			copy(v.coarse.source[v.coarse.layout.Dense(q[0], q[1], q[2]):][:r.n], source[r.dense:])
		}
	})
}

// pressure returns A·u − f at own point q of level l.
func (v *levels) pressure(l int, q [3]int) float64 {
	p, u := v.parts[l].Layout, v.grids[l].Values
	i, d := p.Index(q[0], q[1], q[2]), p.Dense(q[0], q[1], q[2])
	sum := float64(method.Coefficient(&v.ops[l], kernel.Center, d) * u[i])
	stride := [3]int{1, p.Row, p.Plane}
	for a := range p.Dim {
		sum -= float64(method.Coefficient(&v.ops[l], kernel.West+2*a, d) * u[i-stride[a]])
		sum -= float64(method.Coefficient(&v.ops[l], kernel.West+2*a+1, d) * u[i+stride[a]])
	}
	return sum - v.grids[l].Source.At(d)
}

// up adds the change of level l+1 since its values were restricted to level l, on the ring too. Points in contact are
// not corrected.
func (v *levels) up(l int) {
	fine, coarse := v.grids[l], v.grids[l+1]
	change := v.moved[l+1]
	values, c := coarse.Values, coarse.Part.Layout
	replicated := l+1 == v.plan.depth
	if replicated {
		values = v.coarse.values
	}
	v.inject(l, change)
	v.eachRow(l, c.Interior(), func(r *row) {
		i := r.at
		if replicated {
			i = v.coarse.layout.Index(r.grid[0], r.grid[1], r.grid[2])
		}
		for x := range r.n {
			change[r.at+x] = float64(v.theta * (values[i+x] - change[r.at+x]))
		}
	})
	if !v.plan.nested(l) {
		v.parts[l+1].extrapolate(change)
	}
	kept := coarse.Values
	coarse.Values = change
	fine.Prolong(coarse, nil, v.parts[l].Layout.Interior())
	coarse.Values = kept
}

// cycle executes a W cycle from level l. The cycle of the replicated level gains so much that one suffices. The first relaxation and restriction are omitted if they were executed before.
func (v *levels) cycle(l int, restricted bool) {
	if !restricted {
		v.relax(l)
		v.down(l)
	}
	if l+1 == v.plan.depth {
		v.coarse.cycle()
	} else {
		v.cycle(l+1, restricted)
		v.cycle(l+1, false)
	}
	v.up(l)
	v.relax(l)
}

// phaseDown relaxes and restricts the region down to the replicated level, whose right-hand side at the own points is
// then complete.
func (v *levels) phaseDown() {
	for l := range v.plan.depth {
		v.relax(l)
		v.down(l)
	}
}

// phaseUp executes the rest of the step.
func (v *levels) phaseUp() { v.cycle(0, true) }

// start computes the starting values: full multigrid on the replicated level, which all peers compute alike, and
// interpolation to the finer ones.
func (v *levels) start() error {
	k := v.plan.depth
	if err := v.coarse.start(); err != nil {
		return err
	}
	v.copyWhole(v.grids[k].Values)
	p := v.coarse.problem
	for l := k - 1; l >= 0; l-- {
		g := v.grids[l]
		if err := p.CoarseBoundaryIn(g.Part.Global, v.parts[l].box(), g.Part.Layout, g.Values); err != nil {
			return err
		}
		g.Interpolate(v.grids[l+1], g.Part.Layout.Interior())
		v.project(l)
		if l > 0 {
			v.relax(l)
			v.relax(l)
			v.parts[l].extrapolate(g.Values)
		}
	}
	return nil
}

// project limits the values of level l to the obstacles.
func (v *levels) project(l int) {
	g := v.grids[l]
	c := g.Part.Layout
	d := 0
	for z := range c.N[2] {
		for y := range c.N[1] {
			row := g.Values[c.Index(0, y, z):][:c.N[0]]
			for x, u := range row {
				row[x] = kernel.Clamp(u, g.Lower.At(d), g.Upper.At(d))
				d++
			}
		}
	}
}

// copyWhole copies the values of the replicated level, with ghosts, to a padded array of its part.
func (v *levels) copyWhole(dst []float64) {
	p := &v.parts[v.plan.depth]
	c, b := p.Layout, p.Layout.Interior()
	for a := range c.Dim {
		b.Lo[a], b.Hi[a] = -1, c.N[a]+1
	}
	method.CopyBox(dst, c, b, v.coarse.values, v.coarse.layout, [3]int{b.Lo[0] + p.Lo[0], b.Lo[1] + p.Lo[1], b.Lo[2] + p.Lo[2]})
}

// downWork returns the cost of phaseDown in point relaxations.
func (v *levels) downWork() (points int) {
	for l := range v.plan.depth {
		points += 2 * v.parts[l].inner.Points()
	}
	return points
}

// upWork returns the nominal cost of phaseUp in point relaxations.
func (v *levels) upWork() int { return v.cycleWork(0, true) }

func (v *levels) cycleWork(l int, restricted bool) int {
	if l == v.plan.depth {
		return v.coarse.cycleWork()
	}
	n := v.parts[l].inner.Points()
	points := n + n/2 + v.cycleWork(l+1, restricted)
	if l+1 < v.plan.depth {
		points += v.cycleWork(l+1, false)
	}
	if !restricted {
		points += 2 * n
	}
	return points
}

// startWork returns the nominal cost of start in point relaxations.
func (v *levels) startWork() int {
	points := (startCycles + 1) * v.coarse.cycleWork()
	for l := range v.plan.depth {
		n := v.parts[l].Layout.Points()
		if points += n / 2; l > 0 {
			points += 2 * n
		}
	}
	return points
}
