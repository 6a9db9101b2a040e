package multilevel

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// redBlack is projected SOR in red-black order on the whole grid (Cryer, SIAM J. Control 9, 1971). A sweep
// relaxes the points of colour 0, then those of colour 1. Points of one colour read only the other colour, so
// after each half the values of that colour, half a face, are sent to the neighbours while the interior is
// relaxed.
type redBlack struct {
	*ownBlock
	factor method.AdaptiveOmega // observes exact norms when a check takes effect
	given  bool                 // by the user
	stable float64              // stableOmega of the problem or time step; 0: A is symmetric
	opened []stage              // see opening
	stages []stage              // of a sweep
	at     int
	sweeps iterate.Iteration // sweeps per run of the stages
}

const (
	// sorEvery and sorLag are the interval and the lag of checks. The schedule decides which checks measure the
	// residual.
	sorEvery = 8
	sorLag   = 2
	// sorSweeps bounds the sweeps per run of the stages without neighbours.
	sorSweeps = 4
	// sorPoints bounds the work of these sweeps: some tenths of a second.
	sorPoints = 1 << 26
)

func newRedBlack(g *peer, o *ownBlock) *redBlack {
	given := g.config.Method.Omega
	m := &redBlack{ownBlock: o, given: given > 0,
		factor: method.NewAdaptiveOmega(cmp.Or(given, g.config.Omega), given > 0)}
	if len(g.channels) == 0 {
		m.stages = []stage{{kind: stageCompute, steps: []problem.SweepStep{{Box: m.own, Chunks: 1}}, runAll: func() {
			m.sweep.RedBlack(m.u, m.factor.Omega(), int(m.sweeps), g.exec)
		}}}
		return m
	}
	values := grid{array: m.u, layout: m.block.Layout, parity: parity(m.block.Box), colour: -1}
	m.opened = exchangeStages(nil, faceExchange(g.channels, values, m.own))
	for colour := range 2 {
		values.colour = colour
		x := faceExchange(g.channels, values, m.own)
		m.stages = append(m.stages,
			stage{
				kind: stageCompute, x: x, steps: planParts(m.own, m.block.Layout.Dim, x, g.config.Late),
				runPiece: func(b kernel.Box, _ int) { m.sweep.RelaxColour(m.u, colour, m.factor.Omega(), b) },
			},
			stage{kind: stageAwait, x: x})
	}
	return m
}

func (m *redBlack) prepare(p *problem.Problem, step bool) error {
	m.factor.Forget()
	m.at = 0
	if !m.given && m.factor.Omega() == 0 {
		m.factor = method.NewAdaptiveOmega(initialOmega(p, step), false)
	}
	if p.Symmetric() {
		return nil
	}
	if stable, scalable := stableOmega(p); stable != m.stable {
		m.stable = stable
		if m.given {
			m.factor.Limit(stable, scalable)
		} else {
			m.factor = method.NewGuardedOmega(m.factor.Omega(), stable, scalable)
		}
	}
	return nil
}

func (m *redBlack) name() string { return problem.SOR }

func (m *redBlack) begin(bool) {}

func (m *redBlack) resume() { m.factor.Resume() }

func (m *redBlack) opening() []stage { return m.opened }

func (m *redBlack) next(limit iterate.Iteration) *stage {
	if m.at == 0 {
		m.sweeps = 1
		if len(m.peer.channels) == 0 {
			m.sweeps = min(limit, sorSweeps, max(1, iterate.Iteration(sorPoints/m.own.Points())))
			m.stages[0].passes = int(m.sweeps)
		}
	}
	if m.at == len(m.stages) {
		m.at = 0
		return nil
	}
	m.at++
	return &m.stages[m.at-1]
}

func (m *redBlack) done() (cycles iterate.Iteration, work float64) {
	return m.sweeps, float64(m.sweeps)
}

func (m *redBlack) exhausted() bool { return false }

func (m *redBlack) measured() (float64, bool) { return 0, false }

func (m *redBlack) observe(squares float64) {
	m.factor.Observe(m.peer.driver.checkOfAll(), math.Sqrt(squares))
}

func (m *redBlack) unstable() bool { return m.factor.Unstable() }

func (m *redBlack) damping() iterate.Damping {
	d := iterate.Damping{Gain: m.factor.Gain(), Damped: m.factor.Damped()}
	if m.factor.CanDamp() {
		d.Lower = func() { m.factor.Damp(m.peer.driver.checkOfAll()) }
	}
	return d
}

func (m *redBlack) Fields(visit func(field any)) { m.factor.Fields(visit) }

func (m *redBlack) omega() float64 { return m.factor.Undamped() }

func (m *redBlack) describe() string { return fmt.Sprintf("ω = %.4f at the end", m.factor.Omega()) }
