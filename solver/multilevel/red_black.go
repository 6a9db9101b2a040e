package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// redBlack is projected SOR in red-black order on the whole grid (Cryer, SIAM J.
// Control 9, 1971): a sweep relaxes the points of colour 0, then those of colour 1. The
// points of a colour read only those of the other, so after each half the neighbours
// get the values of that colour alone, half a face; they travel while the interior is
// relaxed.
type redBlack struct {
	peer          *peer
	block         *problem.Discretization
	sweeper       *kernel.Sweep
	u             []float64
	own           kernel.Box
	parity        int
	factor        method.AdaptiveOmega // of the relaxation; told exact norms when a verdict takes effect
	norms         []kernel.Norm
	opening       []stage
	stages        []stage // of a sweep
	at            int
	sweeps        iterate.Iteration // that the stages do at once
	residualStage stage
}

const (
	// sorEvery and sorLag are the rhythm of checks; the residual is measured only where
	// the schedule says so.
	sorEvery = 8
	sorLag   = 2
	// sorSweeps is the most sweeps that a peer without neighbours does at once.
	sorSweeps = 4
	// sorPoints bounds the work of these: some tenths of a second.
	sorPoints = 1 << 26
)

func newRedBlack(g *peer) (*redBlack, error) {
	c := &g.config
	l, err := kernel.NewLayout(c.Problem.Dimension, g.box.Size())
	if err != nil {
		return nil, err
	}
	m := &redBlack{peer: g, block: &problem.Discretization{Box: g.box, Layout: l, Exec: g.exec, Allocate: g.config.Allocate}, own: l.Interior()}
	m.parity = (g.box.Lo[0] + g.box.Lo[1] + g.box.Lo[2]) & 1
	m.u = g.config.NewArray(l.Len())
	m.factor = method.NewAdaptiveOmega(c.Method.Omega, c.Method.Omega > 0)
	values := grid{array: m.u, layout: l, parity: m.parity, colour: -1}
	if len(g.channels) > 0 {
		m.opening = exchangeStages(nil, faceExchange(g.channels, values, m.own))
	}
	m.residualStage = stage{kind: stageCompute, steps: planParts(m.own, l.Dim, nil)}
	m.residualStage.runPiece = func(b kernel.Box, i int) { m.sweeper.Residual(&m.norms[i], m.u, b) }
	m.norms = make([]kernel.Norm, pieces(m.residualStage.steps))
	if len(g.channels) == 0 {
		m.stages = []stage{{kind: stageCompute, steps: []problem.Step{{Box: m.own, Chunks: 1}}, runAll: func() {
			m.sweeper.RedBlack(m.u, m.factor.Omega(), int(m.sweeps), g.exec)
		}}}
		return m, nil
	}
	for colour := range 2 {
		values.colour = colour
		x := faceExchange(g.channels, values, m.own)
		m.stages = append(m.stages,
			stage{kind: stageCompute, x: x, steps: planParts(m.own, l.Dim, x), runPiece: func(b kernel.Box, _ int) {
				m.sweeper.RelaxColour(m.u, colour, m.factor.Omega(), b)
			}},
			stage{kind: stageAwait, x: x})
	}
	return m, nil
}

func (m *redBlack) build(p *problem.Problem, before []float64, dt float64) (kernel.Sum, error) {
	b := m.block
	if err := b.Build(p); err != nil {
		return kernel.Sum{}, err
	}
	if before != nil {
		b.Remember(before, dt)
	}
	var err error
	m.sweeper, err = kernel.New(kernel.Config{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source, Lower: b.Lower, Upper: b.Upper,
		Step: 1 / b.Diagonal, Parity: m.parity,
	})
	if err != nil {
		return kernel.Sum{}, err
	}
	if err = b.FillReference(m.u); err != nil {
		return kernel.Sum{}, err
	}
	if m.factor.Omega() == 0 {
		m.factor = method.NewAdaptiveOmega(initialOmega(p, before != nil), false)
	}
	m.factor.Forget()
	m.at = 0
	m.peer.runNow(&m.residualStage)
	return m.collect(), nil
}

func (m *redBlack) begin(values []float64) error {
	_, err := m.block.Start(m.u, values)
	return err
}

func (m *redBlack) openingStages() []stage { return m.opening }

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

func (m *redBlack) measure() *stage { return &m.residualStage }

func (m *redBlack) sums(s *[maxSums]kernel.Sum) int {
	s[0] = m.collect()
	return 1
}

func (m *redBlack) applyTotals(totals []float64) float64 {
	m.factor.Observe(int(m.peer.driver.check), math.Sqrt(totals[0]))
	return totals[0]
}

// collect merges and empties what the pieces measured.
func (m *redBlack) collect() kernel.Sum {
	var sum kernel.Sum
	for i := range m.norms {
		sum.Merge(&m.norms[i].Squares)
		m.norms[i].Reset()
	}
	return sum
}

func (m *redBlack) magnitudes() kernel.Sum { return m.block.Magnitudes(m.u, m.own) }

func (m *redBlack) copyOut(dst []float64) { m.block.CopyOut(dst, m.u) }

func (m *redBlack) checkInterval() (every, lag iterate.Iteration, fixed bool) {
	return sorEvery, sorLag, false
}
