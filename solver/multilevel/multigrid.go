package multilevel

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// multigrid is projected multigrid on the whole grid. Every peer runs the stages of package method on its own
// box of each grid, with an exchange of ghosts between them. Only the root holds the coarse grids from one
// level on: it gathers their data and scatters the correction. The safeguard decides by reductions.
type multigrid struct {
	peer          *peer
	plan          levelPlan
	block         *problem.Discretization // of the own part of grid 0
	own           kernel.Box
	u             []float64
	residualSweep *kernel.Sweep // of the block; measures only
	levels        []*gridLevel  // distributed grids, and the own box of the first gathered one
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
	referenceSquares              kernel.Sum // squared residual of a grid's reference vector, for guardedStart
	warm                          bool       // cycles can begin from the present values
	reference                     kernel.Sum
	atReference                   bool // the values are the reference vector, whose residual is known
	noStage                       stage
	first                         bool    // no cycle has been done
	stepFraction                  float64 // for takeFraction and measureFraction
	measureFraction, takeFraction []stage
	restartCycle                  []stage // a cycle that begins with the reference vector

	stopStages     []stage // check for an early end between two relaxations
	sinceStopCheck int     // relaxations since the last check for an early end
	stopped        bool
	restores       bool
	relaxed        int     // relaxations by the safeguard
	nominal        float64 // work of a cycle, in relaxations

	phase   guardPhase
	list    []stage // stages in progress
	at      int
	sweeps  int     // remaining after a rejection
	squares float64 // of the current values; NaN before a reduction
	cost    float64
}

// checkGathered returns an error if the boxes are so thin that one peer would have to hold too large a grid.
func checkGathered(c *problem.Config) error {
	if c.Partition.Peers() == 1 {
		return nil
	}
	plan := planLevels(c)
	if n := plan.hierarchy.Grids[plan.gathered]; boxPoints(n) > maxGatherPoints {
		return fmt.Errorf(
			"multilevel: the boxes of %d peers are too thin to hold a coarser grid, "+
				"and one peer cannot hold the %v points; use fewer peers, or boxes instead of slabs",
			c.Partition.Peers(),
			n,
		)
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
	m.block, m.own = &problem.Discretization{
		Box:      window,
		Layout:   l,
		Executor: g.exec,
		Allocate: c.Allocate,
	}, within(
		g.box,
		window,
	)
	m.diffusion.plan(m)
	if m.block.KeepDiffusion = len(m.diffusion.lo) > 0; m.block.KeepDiffusion {
		m.block.DiffusionBox = problem.Box{Lo: m.diffusion.lo[0], Hi: m.diffusion.hi[0]}
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

// measureRows measures the residual of rows of grid 0 if it is not distributed.
func (m *multigrid) measureRows(worker, lo, hi, z int) {
	n := m.block.Layout.N[0]
	m.residualSweep.Residual(&m.norms[worker], m.u, kernel.Box{Lo: [3]int{0, lo, z}, Hi: [3]int{n, hi, z + 1}})
}

func (m *multigrid) root() bool { return m.peer.tree.Parent < 0 }

// distributed reports whether there are other peers.
func (m *multigrid) distributed() bool { return len(m.peer.channels) > 0 }

// embed copies values of the own box to an array of the block.
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
		b.AddPrevious(m.embed(before), dt)
	}
	var err error
	if m.residualSweep, err = b.Sweep(1); err != nil {
		return kernel.Sum{}, err
	}
	if err = b.FillReference(m.u); err != nil {
		return kernel.Sum{}, err
	}
	// If the root holds grid 0, the gather may copy arrays of this step: compile again.
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
	m.stopped = false
	m.relaxed = 0
	m.sinceStopCheck = 0
	m.peer.runNow(&m.residualStage)
	m.reference = m.collect()
	return m.reference, nil
}

func (m *multigrid) begin(values []float64) error {
	warm, err := m.block.Start(m.u, m.embed(values))
	m.warm = warm
	m.atReference = !warm
	m.first = true
	return err
}

// buildLevels creates the grids of a problem.
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
			op, err = p.CoarseOperatorIn(
				problem.Box{Hi: p.N},
				h.Grids[l],
				window,
				m.diffusion.distributed[l],
				[kernel.Directions][]float64{},
			)
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

// buildWhole creates the grids that only the root holds.
func (m *multigrid) buildWhole(p *problem.Problem) error {
	h := &m.plan.hierarchy
	for l := m.plan.gathered; l <= h.Coarsest(); l++ {
		box := problem.Box{Hi: h.Grids[l]}
		var op kernel.Operator
		var err error
		if l == 0 {
			op, _, err = problem.NewStencil(p).Operator(box, kernel.Layout{N: p.N}, [kernel.Directions][]float64{})
		} else {
			e := m.diffusion.root[l-m.plan.gathered]
			op, err = p.CoarseOperatorIn(problem.Box{Hi: p.N}, h.Grids[l], box, e, [kernel.Directions][]float64{})
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

// renewLevels replaces the operators of the previous time step, and the fields of grid 0.
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

// collect merges and resets the pieces' norms.
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
