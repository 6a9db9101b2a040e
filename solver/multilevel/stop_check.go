package multilevel

import (
	"cmp"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A cycle may cost many relaxations: the full multigrid start, or up to a thousand relaxations by the safeguard
// instead of a correction. To end within about one relaxation of a request, cycles contain checks for an early
// end between their stages and between two relaxations. A single peer reads its own request. Several peers run a
// reduction without sums, so that all end at the same place. They do so only after stopCheckPoints of work each,
// which keeps the cost small.

// stopCheckPoints is the least number of points that a peer relaxes between two checks for an early end that
// cost messages: some milliseconds.
const stopCheckPoints = 1 << 20

// stopCheckInterval returns the number of relaxations between two checks for an early end.
func stopCheckInterval(c *problem.Config) float64 {
	if c.Partition.Peers() == 1 {
		return 0
	}
	points := cmp.Or(c.StopCheckPoints, stopCheckPoints)
	return float64(points) * float64(c.Partition.Peers()) / float64(c.Problem.Points())
}

// stopChecks inserts checks for an early end into a list of stages, at the same places on all peers: stages of
// distributed grids are not fused.
type stopChecks struct {
	m         *multigrid
	work      float64 // since the last check, in relaxations
	corrected bool    // grid 0 has been corrected, and saved holds its earlier values
}

// after appends a check after stage s of the given work if one is due. last marks the last stage, after which
// the cycle contributes to a reduction anyway.
func (l *stopChecks) after(out []stage, s method.Stage, work float64, last bool) []stage {
	m := l.m
	l.work += work
	l.corrected = l.corrected || s.Level == 0 && (s.Kind == method.Prolong || s.Prolongs)
	if last || l.work == 0 || l.work < stopCheckInterval(&m.peer.config) ||
		m.distributed() && s.Level >= m.plan.gathered {
		return out
	}
	l.work = 0
	return append(out, m.stopCheck(l.corrected)...)
}

// stopCheck returns a check for an early end. corrected: an early end restores the values before the
// correction.
func (m *multigrid) stopCheck(corrected bool) []stage {
	update := func() { m.stopped, m.restores = m.peer.stopRequested() != iterate.Running, corrected }
	if !m.distributed() {
		return []stage{{kind: stageDo, do: update}}
	}
	return []stage{
		{kind: stageDo, do: func() { m.peer.allReduce.contribute(0) }},
		{kind: stageReduce},
		{kind: stageDo, do: update},
	}
}

// stopRequested returns the reason of a request for an early end that all peers know of.
func (g *peer) stopRequested() iterate.Reason {
	if len(g.channels) == 0 {
		return g.stopWanted
	}
	return g.allReduce.stopReason
}

// abandonCycle ends a cycle early. It discards the full multigrid start and any correction that was not
// accepted, and keeps relaxed values.
func (m *multigrid) abandonCycle() {
	var list []stage
	switch {
	case m.phase == guardStart:
		list = []stage{{kind: stageDo, do: func() { m.fail(m.block.FillReference(m.u)) }}}
	case m.restores:
		list = m.restore
	}
	m.enter(guardStopped, list, 0)
}

// relaxes reports whether the safeguard has another relaxation to do, and counts it.
func (m *multigrid) relaxes() bool {
	m.sweeps--
	if m.sweeps < 0 || m.exhausted() {
		return false
	}
	m.relaxed++
	m.sinceStopCheck++
	return true
}

// exhausted reports whether cycles and relaxations by the safeguard have used the work that the bound on cycles
// allows.
func (m *multigrid) exhausted() bool {
	return workExhausted(int(m.peer.config.MaxSweeps), int(m.peer.driver.cycle), m.relaxed, m.nominal)
}

// workExhausted reports whether the work of maxCycles cycles, each of nominal sweeps, is used up. Relaxations
// by the safeguard count as well. 0: no bound.
func workExhausted(maxCycles, cycles, relaxations int, nominal float64) bool {
	return maxCycles > 0 && float64(cycles)*nominal+float64(relaxations) >= float64(maxCycles)*nominal
}

// oneSweepEach splits a stage of several sweeps into stages of one.
func oneSweepEach(s method.Stage) []method.Stage {
	n := s.Sweeps
	s.Sweeps = 1
	return slices.Repeat([]method.Stage{s}, n)
}

// stopCheck returns a check for an early end between two cycles if one is due and cycles contain none, else
// nil.
func (c *cycleDriver) stopCheck() *stage {
	if _, own := c.method.(*multigrid); own || len(c.peer.channels) == 0 || c.open || c.reason != iterate.Running ||
		c.cycle == c.stopCheckedAt || float64(c.cycle-c.stopCheckedAt) < stopCheckInterval(&c.peer.config) {
		return nil
	}
	c.stopCheckedAt = c.cycle
	c.peer.allReduce.contribute(0)
	return &c.awaitReduction
}

// stopEarly ends the run at the current iterate if an early end was requested and all peers know of it.
func (c *cycleDriver) stopEarly() bool {
	why := c.peer.stopRequested()
	if why == iterate.Running || c.reason != iterate.Running || c.open && len(c.peer.channels) > 0 ||
		math.IsNaN(c.norm0) {
		return false
	}
	c.reason, c.last = why, c.cycle
	return true
}
