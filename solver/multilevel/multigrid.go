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
	*ownBlock
	cycleStages
	plan       levelPlan
	levels     []*gridLevel // distributed grids, and the own box of the first gathered one
	rootLevels []*gridLevel // at the root: grids from plan.gathered on
	saved      []float64
	guard      method.Safeguard
	diffusion  levelDiffusion

	problem          *problem.Problem  // of the time step
	referenceSquares kernel.Sum        // squared residual of a grid's reference vector, for guardedStart
	warm             bool              // cycles can begin from the present values
	first            bool              // no cycle has been done
	continues        bool              // the method has begun: no starting values but those of the run
	earlier          *method.Safeguard // that of an earlier run in which it has begun
	stepFraction     float64           // for takeFraction and measureFraction

	sinceStopCheck int // relaxations since the last check for an early end
	stopped        bool
	restores       bool
	relaxed        int // relaxations by the safeguard

	phase   guardPhase
	list    []stage // stages in progress
	at      int
	sweeps  int     // remaining after a rejection
	squared float64 // squared residual of the current values; NaN before a reduction
	cost    float64
}

// checkGathered returns an error if the boxes are so thin that one peer would have to hold too large a grid.
func checkGathered(c *problem.Config) error {
	if c.Partition.Peers() == 1 {
		return nil
	}
	plan := planLevels(c)
	if n := plan.hierarchy.Grids[plan.gathered]; boxPoints(n) > maxGatherPoints {
		return fmt.Errorf("multilevel: the boxes of %d peers are too thin to hold a coarser grid, and one peer cannot "+
			"hold the %v points; use fewer peers, or boxes instead of slabs", c.Partition.Peers(), n)
	}
	return nil
}

// multigridWindow returns the block of grid 0 that multigrid needs.
func multigridWindow(g *peer) problem.Box {
	if plan := planLevels(&g.config); len(plan.parts) > 1 {
		return plan.window(0, g.config.Rank)
	}
	return g.box
}

func newMultigrid(g *peer, o *ownBlock) *multigrid {
	m := &multigrid{ownBlock: o, plan: planLevels(&g.config)}
	m.diffusion.plan(m)
	if m.block.KeepDiffusion = len(m.diffusion.lo) > 0; m.block.KeepDiffusion {
		m.block.DiffusionBox = problem.Box{Lo: m.diffusion.lo[0], Hi: m.diffusion.hi[0]}
	}
	return m
}

// measureRows measures the residual of rows of grid 0 if it is not distributed.
func (m *multigrid) measureRows(worker, lo, hi, z int) {
	n := m.block.Layout.N[0]
	m.sweep.Residual(&m.norms[worker], m.u, kernel.Box{Lo: [3]int{0, lo, z}, Hi: [3]int{n, hi, z + 1}})
}

func (m *multigrid) root() bool { return m.peer.tree.Parent < 0 }

// distributed reports whether there are other peers.
func (m *multigrid) distributed() bool { return len(m.peer.channels) > 0 }

func (m *multigrid) prepare(p *problem.Problem, _ bool) error {
	if m.problem = p; m.saved == nil {
		m.saved = m.peer.config.NewArray(m.block.Layout.Len())
	}
	m.diffusion.build(m, p)
	if m.levels != nil && m.plan.gathered > 0 {
		if err := m.renewLevels(); err != nil {
			return err
		}
		m.diffusion.attach(m)
	} else { // if the root holds grid 0, the gather may copy arrays of this step: compile again
		if err := m.buildLevels(p); err != nil {
			return err
		}
		m.diffusion.attach(m)
		m.compile()
	}
	m.guard = method.NewSafeguard(p.Symmetric(), p.WeakFlow())
	m.enter(guardBetween, nil, 0)
	m.squared = math.NaN()
	m.stopped = false
	m.relaxed = 0
	m.sinceStopCheck = 0
	if m.continues = m.earlier != nil; m.continues {
		m.guard.Adopt(m.earlier)
	}
	return nil
}

func (m *multigrid) name() string { return problem.Multigrid }

func (m *multigrid) begin(warm bool) {
	m.warm = warm
	m.atReference = !warm
	m.first = true
}

func (m *multigrid) resume() {
	m.begin(true)
	m.squared = math.NaN()
}

func (m *multigrid) opening() []stage { return m.opened }

// buildLevels creates the grids of a problem.
func (m *multigrid) buildLevels(p *problem.Problem) error {
	rank := m.peer.config.Rank
	m.levels, m.rootLevels = nil, nil
	for l := 0; l < len(m.plan.parts) && m.plan.gathered > 0; l++ {
		window, op := m.plan.window(l, rank), m.block.Operator
		var err error
		if l == m.plan.gathered { // only to gather from and scatter to
			op = kernel.Operator{Diag: 1}
		} else if l > 0 {
			op, err = m.coarseOperator(l, window, m.diffusion.distributed[l], kernel.Operator{})
		}
		if err != nil {
			return err
		}
		g, err := m.addLevel(&m.levels, l, window, m.plan.parts[l].Box(rank), op)
		if err != nil {
			return err
		}
		if m.distributed() && l < m.plan.gathered {
			g.share(m.peer.channels, m.plan.depthOf(l, rank), m.peer.config.NewArray)
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
			op, _, err = problem.NewStencil(p).Operator(box, kernel.Layout{N: p.N}, op.Arrays)
		} else {
			op, err = m.coarseOperator(l, box, m.diffusion.root[l-m.plan.gathered], op)
		}
		if err != nil {
			return err
		}
		g, err := m.addLevel(&m.rootLevels, l, box, box, op)
		if err != nil {
			return err
		}
		if l == 0 {
			m.saved = m.peer.config.NewArray(len(g.Values))
			if err = p.CoarseBoundary(p.N, g.Part.Layout, g.Values); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLevel creates the block of grid l and connects the last of levels to it.
func (m *multigrid) addLevel(
	levels *[]*gridLevel, l int, window, own problem.Box, op kernel.Operator,
) (*gridLevel, error) {
	var fields *problem.Discretization
	if l < min(1, m.plan.gathered) {
		fields = m.block
	}
	g, err := m.newGridLevel(l, window, own, op, fields)
	if err != nil {
		return nil, err
	}
	if fields != nil {
		g.Values = m.u
	}
	*levels = append(*levels, g)
	if n := len(*levels); n > 1 {
		err = (*levels)[n-2].Connect(g.Level)
	}
	return g, err
}

// coarseOperator returns the operator on a window of grid l with the diffusion e, in the arrays of old if they are
// large enough.
func (m *multigrid) coarseOperator(
	l int, window problem.Box, e *method.Edges, old kernel.Operator,
) (kernel.Operator, error) {
	p := m.problem
	return p.CoarseOperatorIn(problem.Box{Hi: p.N}, m.plan.hierarchy.Grids[l], window, e, old.Arrays)
}

// renewLevels replaces the operators of the previous time step, and the fields of grid 0.
func (m *multigrid) renewLevels() error {
	b, none := m.block, kernel.Field{}
	if err := m.levels[0].Renew(b.Operator, b.Source, b.Lower, b.Upper); err != nil {
		return err
	}
	renew := func(levels []*gridLevel, edges []*method.Edges, first int) error {
		for i, g := range levels {
			op, err := m.coarseOperator(first+i, g.window, edges[i], g.Operator())
			if err == nil {
				err = g.Renew(op, none, none, none)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	end := min(len(m.levels), m.plan.gathered) // the rest is only gathered from and scattered to
	if err := renew(m.levels[1:end], m.diffusion.distributed[1:], 1); err != nil {
		return err
	}
	return renew(m.rootLevels, m.diffusion.root, m.plan.gathered)
}

func (m *multigrid) measured() (float64, bool) { return m.squared, !math.IsNaN(m.squared) }

func (m *multigrid) observe(squares float64) { m.squared = squares }

func (m *multigrid) unstable() bool { return false }

func (m *multigrid) damping() iterate.Damping { return iterate.Damping{} }

func (m *multigrid) done() (iterate.Iteration, float64) {
	if m.stopped {
		return 0, m.cost
	}
	return 1, m.cost
}

func (m *multigrid) Fields(visit func(field any)) {
	visit(&m.warm)
	visit(&m.first)
	visit(&m.continues)
	visit(&m.atReference)
	visit(&m.squared)
	visit(&m.relaxed)
	visit(&m.sinceStopCheck)
	m.guard.Fields(visit)
}

func (m *multigrid) omega() float64 { return 0 }

func (m *multigrid) describe() string {
	h := &m.plan.hierarchy
	if h.Coarsest() == 0 {
		return "the grid cannot be coarsened and is only relaxed"
	}
	out := "grids " + h.String()
	for l := range h.Coarsest() {
		if !h.Nested(l) {
			out += "; points of grids that do not halve lie between those of the finer grid"
			break
		}
	}
	if at := m.plan.gathered; m.distributed() && at < len(h.Grids) {
		out += fmt.Sprintf("; gathered on peer 0 from level %d of %d", at+1, len(h.Grids))
	}
	return out
}
