package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A cycle may cost many relaxations: the full multigrid start, and up to a thousand that the
// safeguard does instead of a correction. So that an early end takes effect within about
// one, there are looks between the stages of a cycle and between two relaxations. A peer
// alone looks at its own wish. Several take a total of nothing but the wish, so that all end
// at the same place; they do so after lookPoints of work each, which hides what it costs.

// lookPoints is how many points a peer relaxes at least between two looks that cost
// messages: some milliseconds.
const stopCheckPoints = 1 << 20

// lookEvery is the number of relaxations between two looks.
func stopCheckInterval(c *problem.Config) float64 {
	if c.Partition.Peers() == 1 {
		return 0
	}
	points := c.LookPoints
	if points == 0 {
		points = stopCheckPoints
	}
	return float64(points) * float64(c.Partition.Peers()) / float64(c.Problem.Points())
}

// looks places looks in a list of stages. It is the same on all peers: where grids are cut,
// no stages are fused.
type stopChecks struct {
	m         *multigrid
	work      float64 // since the last one, in relaxations
	corrected bool    // grid 0 has been, and keep has what it was
}

// after adds a look after stage s of that many relaxations, if one is due there; last: it
// is the last one, after which the cycle takes a total anyway.
func (l *stopChecks) after(out []stage, s method.Stage, work float64, last bool) []stage {
	m := l.m
	l.work += work
	l.corrected = l.corrected || s.Level == 0 && (s.Kind == method.Prolong || s.Prolongs)
	if last || l.work == 0 || l.work < stopCheckInterval(&m.peer.config) || m.distributed() && s.Level >= m.plan.gathered {
		return out
	}
	l.work = 0
	return append(out, m.stopCheck(l.corrected)...)
}

// look is a look; corrected: an early end takes back the correction.
func (m *multigrid) stopCheck(corrected bool) []stage {
	update := func() { m.stopped, m.restores = m.peer.stopRequested() != iterate.Running, corrected }
	if !m.distributed() {
		return []stage{{kind: stageDo, do: update}}
	}
	return []stage{{kind: stageDo, do: func() { m.peer.allReduce.contribute(0) }}, {kind: stageReduce}, {kind: stageDo, do: update}}
}

// asked is the wish for an early end that all peers know of.
func (g *peer) stopRequested() iterate.Reason {
	if len(g.channels) == 0 {
		return g.stopWanted
	}
	return g.allReduce.stopReason
}

// leave ends a cycle early. Of the full multigrid start nothing is kept, of a correction
// that was not accepted neither; relaxed values are.
func (m *multigrid) abandonCycle() {
	var list []stage
	switch {
	case m.phase == guardStart:
		list = []stage{{kind: stageDo, do: func() { m.fail(m.block.FillReference(m.u)) }}}
	case m.restores:
		list = m.fallback.restore
	}
	m.enter(guardStopped, list, 0)
}

// relaxes reports whether the safeguard has another relaxation to do.
func (m *multigrid) relaxes() bool {
	m.sweeps--
	if m.sweeps < 0 || m.exhausted() {
		return false
	}
	m.relaxed++
	m.sinceStopCheck++
	return true
}

// exhausted reports whether relaxations by the safeguard have used up the work that the
// bound on cycles allows: each cycle's worth of them counts as a cycle.
func (m *multigrid) exhausted() bool {
	return workExhausted(int(m.peer.config.MaxSweeps), int(m.peer.driver.cycle), m.relaxed, m.nominal)
}

// spent is the bound on work of most cycles, each of that many sweeps: relaxations by the
// safeguard count, too. 0: there is no bound.
func workExhausted(maxCycles, cycles, relaxations int, nominal float64) bool {
	return maxCycles > 0 && float64(cycles)*nominal+float64(relaxations) >= float64(maxCycles)*nominal
}

// gridPart is how many points a grid has, as a part of grid 0.
func (m *multigrid) relativeSize(l int) float64 {
	grids := m.plan.hierarchy.Grids
	return float64(boxPoints(grids[l])) / float64(boxPoints(grids[0]))
}

// singly is a stage of many sweeps as stages of one.
func oneSweepEach(s method.Stage) []method.Stage {
	out := make([]method.Stage, s.Sweeps)
	s.Sweeps = 1
	for i := range out {
		out[i] = s
	}
	return out
}

// look takes a total of the wish between two cycles where cycles have none of their own and
// it is due, nil otherwise.
func (c *cycleDriver) stopCheck() *stage {
	if _, own := c.method.(*multigrid); own || len(c.peer.channels) == 0 || c.open || c.reason != iterate.Running ||
		c.cycle == c.stopCheckedAt || float64(c.cycle-c.stopCheckedAt) < stopCheckInterval(&c.peer.config) {
		return nil
	}
	c.stopCheckedAt = c.cycle
	c.peer.allReduce.contribute(0)
	return &c.awaitReduction
}

// stops ends the run at the current iterate if an early end was asked for and all peers know.
func (c *cycleDriver) stopEarly() bool {
	why := c.peer.stopRequested()
	if why == iterate.Running || c.reason != iterate.Running || c.open && len(c.peer.channels) > 0 || math.IsNaN(c.norm0) {
		return false
	}
	c.reason, c.last = why, c.cycle
	return true
}
