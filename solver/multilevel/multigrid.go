package multilevel

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// multigrid is projected multigrid on the whole grid: the stages of package method, each
// done by everybody on the own box of a grid, with an exchange of ghosts between them.
// The coarse grids, from one of them on, are the root's alone: what it needs is gathered
// there and the correction scattered. The safeguard decides by totals.
type multigrid struct {
	peer          *peer
	plan          levelPlan
	block         *problem.Discretization // of the own part of grid 0
	own           kernel.Box
	u             []float64
	residualSweep *kernel.Sweep // of the block
	levels        []*gridLevel  // of grids that are cut, and the own box of the first that is not
	rootLevels    []*gridLevel  // at the root: grids from plan.gathered on
	saved         []float64
	guard         method.Safeguard

	diffusion levelDiffusion

	problem                       *problem.Problem // of the time step
	norms                         []kernel.Norm
	changes                       []kernel.Sum
	residualStage                 stage
	opening, start                []stage
	cycle, energy, awaitReduction []stage
	fallback                      fallback
	startWork, cycleWork          float64
	referenceSquares              kernel.Sum // the residual of a grid's reference, for its guard
	warm                          bool       // there is a start from which cycles can begin
	reference                     kernel.Sum
	atReference                   bool // the values are the reference vector, whose residual is known
	noStage                       stage
	first                         bool    // no cycle has been done
	stepFraction                  float64 // of a step, for halve and damp
	measureFraction, takeFraction []stage
	restartCycle                  []stage // a cycle that begins with the reference vector

	// Of early ends, see looks.
	stopStages     []stage // a look between two relaxations
	sinceStopCheck int     // relaxations since the last look
	stopped        bool
	restores       bool
	relaxed        int     // relaxations by the safeguard
	nominal        float64 // work of a cycle, in relaxations

	phase   guardPhase
	list    []stage // in progress
	at      int
	sweeps  int     // to come, after a rejection
	squares float64 // of the current values, NaN before a total
	cost    float64
}

// checkGathered refuses boxes so thin that one peer would have to hold too large a grid.
func checkGathered(c *problem.Config) error {
	if c.Partition.Peers() == 1 {
		return nil
	}
	plan := planLevels(c)
	if n := plan.hierarchy.Grids[plan.gathered]; boxPoints(n) > maxGatherPoints {
		return fmt.Errorf("solver: multigrid: the boxes of %d peers are too thin to hold a coarser grid of the %v points, too many for one peer: use fewer peers, or boxes rather than slabs",
			c.Partition.Peers(), n)
	}
	return nil
}

func newMultigrid(g *peer) (*multigrid, error) {
	c := &g.config
	m := &multigrid{peer: g, plan: planLevels(c)}
	window := g.box
	if len(m.plan.parts) > 1 {
		window = m.plan.window(0, c.Rank)
	}
	l, err := kernel.NewLayout(c.Problem.Dimension, window.Size())
	if err != nil {
		return nil, err
	}
	m.block, m.own = &problem.Discretization{Box: window, Layout: l, Exec: g.exec, Allocate: c.Allocate}, within(g.box, window)
	m.diffusion.plan(m)
	if m.block.Follows = len(m.diffusion.lo) > 0; m.block.Follows {
		m.block.Around = problem.Box{Lo: m.diffusion.lo[0], Hi: m.diffusion.hi[0]}
	}
	m.u = c.NewArray(l.Len())
	m.saved = c.NewArray(l.Len())
	steps := planParts(m.own, l.Dim, nil)
	m.norms = make([]kernel.Norm, max(pieces(steps), kernel.Workers(g.exec)))
	m.residualStage = stage{kind: stageCompute, steps: steps, runPiece: func(b kernel.Box, i int) {
		m.residualSweep.Residual(&m.norms[i], m.u, b)
	}}
	m.noStage = stage{kind: stageDo, do: func() {}}
	return m, nil
}

// measureRows takes the residual of rows of grid 0, which nobody shares.
func (m *multigrid) measureRows(worker, lo, hi, z int) {
	n := m.block.Layout.N[0]
	m.residualSweep.Residual(&m.norms[worker], m.u, kernel.Box{Lo: [3]int{0, lo, z}, Hi: [3]int{n, hi, z + 1}})
}

func (m *multigrid) root() bool { return m.peer.tree.Parent < 0 }

// shared tells whether there are other peers.
func (m *multigrid) distributed() bool { return len(m.peer.channels) > 0 }

// embed puts values of the own box where they belong in the block.
func (m *multigrid) embed(values []float64) []float64 {
	if values == nil || len(values) == m.block.Layout.Points() {
		return values
	}
	out := denseGrid(make([]float64, m.block.Layout.Points()), m.block.Layout.N)
	size := m.peer.box.Size()
	from := denseGrid(values, size)
	out.copy(m.own, &from, kernel.Box{Hi: size})
	return out.array
}

func (m *multigrid) build(p *problem.Problem, before []float64, dt float64) (kernel.Sum, error) {
	b := m.block
	m.problem = p
	if err := b.Build(p); err != nil {
		return kernel.Sum{}, err
	}
	if before != nil {
		b.Remember(m.embed(before), dt)
	}
	var err error
	if m.residualSweep, err = b.Sweep(1); err != nil {
		return kernel.Sum{}, err
	}
	if err = b.FillReference(m.u); err != nil {
		return kernel.Sum{}, err
	}
	// Where the root has the problem itself, what is gathered may be copies of this step's.
	m.diffusion.build(m, p)
	built := m.levels != nil && m.plan.gathered > 0
	if built {
		err = m.renewLevels(p)
	} else {
		err = m.buildLevels(p)
	}
	if err == nil {
		m.diffusion.attach(m)
	}
	if err == nil && !built {
		m.compile()
	}
	if err != nil {
		return kernel.Sum{}, err
	}
	m.guard = method.Safeguard{Symmetric: p.Symmetric()}
	m.guard.Reset()
	m.phase, m.squares = guardBetween, math.NaN()
	m.stopped, m.relaxed, m.sinceStopCheck = false, 0, 0
	m.peer.runNow(&m.residualStage)
	m.reference = m.collect()
	return m.reference, nil
}

func (m *multigrid) begin(values []float64) error {
	warm, err := m.block.Start(m.u, m.embed(values))
	m.warm, m.atReference, m.first = warm, !warm, true
	return err
}

// buildLevels makes the grids of a problem.
func (m *multigrid) buildLevels(p *problem.Problem) error {
	h, rank := &m.plan.hierarchy, m.peer.config.Rank
	m.levels, m.rootLevels = nil, nil
	for l := 0; l < len(m.plan.parts) && m.plan.gathered > 0; l++ {
		window, own, op, b := m.plan.window(l, rank), m.plan.parts[l].Box(rank), m.block.Operator, m.block
		var err error
		switch {
		case l == 0:
		case l == m.plan.gathered: // only to gather from and scatter to
			op, b = kernel.Operator{Diag: 1}, nil
		default:
			op, err = p.CoarseOperatorIn(problem.Box{Hi: p.N}, h.Grids[l], window, m.diffusion.distributed[l], [kernel.Directions][]float64{})
			b = nil
		}
		if err != nil {
			return err
		}
		g, err := m.newGridLevel(l, window, own, op, b)
		if err != nil {
			return err
		}
		if b != nil {
			g.Values = m.u
		}
		if m.distributed() && l < m.plan.gathered {
			g.share(m.peer.channels, m.plan.depthOf(l, rank))
		}
		if m.levels = append(m.levels, g); l > 0 {
			if err = m.levels[l-1].Connect(g.Level, nil); err != nil {
				return err
			}
		}
	}
	if !m.distributed() || !m.root() {
		return nil
	}
	return m.buildWhole(p)
}

// buildWhole makes the grids that the root has alone.
func (m *multigrid) buildWhole(p *problem.Problem) error {
	h := &m.plan.hierarchy
	for l := m.plan.gathered; l <= h.Coarsest(); l++ {
		box := problem.Box{Hi: h.Grids[l]}
		var op kernel.Operator
		var err error
		if l == 0 {
			op, _, err = problem.NewStencil(p).Operator(box, kernel.Layout{N: p.N}, [kernel.Directions][]float64{})
		} else {
			op, err = p.CoarseOperatorIn(problem.Box{Hi: p.N}, h.Grids[l], box, m.diffusion.root[l-m.plan.gathered], [kernel.Directions][]float64{})
		}
		if err != nil {
			return err
		}
		g, err := m.newGridLevel(l, box, box, op, nil)
		if err != nil {
			return err
		}
		if l == 0 {
			m.saved = make([]float64, len(g.Values))
			if err = p.CoarseBoundary(p.N, g.Part.Layout, g.Values); err != nil {
				return err
			}
		}
		if m.rootLevels = append(m.rootLevels, g); len(m.rootLevels) > 1 {
			if err = m.rootLevels[len(m.rootLevels)-2].Connect(g.Level, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewLevels gives the grids of the time step before the operators of this one, and grid
// 0 its fields.
func (m *multigrid) renewLevels(p *problem.Problem) error {
	h, b := &m.plan.hierarchy, m.block
	renew := func(g *gridLevel, l int, window problem.Box, e *method.Edges) error {
		op, err := p.CoarseOperatorIn(problem.Box{Hi: p.N}, h.Grids[l], window, e, g.Operator().Arrays)
		if err != nil {
			return err
		}
		return g.Renew(op, kernel.Field{}, kernel.Field{}, kernel.Field{})
	}
	for l, g := range m.levels {
		var err error
		if l == 0 {
			err = g.Renew(b.Operator, b.Source, b.Lower, b.Upper)
		} else if l < m.plan.gathered {
			err = renew(g, l, g.window, m.diffusion.distributed[l])
		}
		if err != nil {
			return err
		}
	}
	for i, g := range m.rootLevels {
		if err := renew(g, m.plan.gathered+i, g.window, m.diffusion.root[i]); err != nil {
			return err
		}
	}
	return nil
}

// collect merges and empties what the pieces measured.
func (m *multigrid) collect() kernel.Sum {
	var sum kernel.Sum
	for i := range m.norms {
		sum.Merge(&m.norms[i].Squares)
		m.norms[i].Reset()
	}
	return sum
}

func (m *multigrid) openingStages() []stage { return m.opening }

func (m *multigrid) measure() *stage {
	if !math.IsNaN(m.squares) {
		return nil
	}
	if m.atReference {
		return &m.noStage
	}
	return &m.residualStage
}

func (m *multigrid) sums(s *[maxSums]kernel.Sum) int {
	if s[0] = m.collect(); m.atReference {
		s[0] = m.reference
	}
	return 1
}

func (m *multigrid) applyTotals(totals []float64) float64 {
	if len(totals) > 0 {
		m.squares = totals[0]
	}
	return m.squares
}

func (m *multigrid) magnitudes() kernel.Sum { return m.block.Magnitudes(m.u, m.own) }

func (m *multigrid) done() (iterate.Iteration, float64) {
	if m.stopped {
		return 0, m.cost
	}
	return 1, m.cost
}

func (m *multigrid) checkInterval() (every, lag iterate.Iteration, fixed bool) { return 1, 0, true }

func (m *multigrid) copyOut(dst []float64) {
	size := m.peer.box.Size()
	to := denseGrid(dst, size)
	from := grid{array: m.u, layout: m.block.Layout}
	to.copy(kernel.Box{Hi: size}, &from, m.own)
}
