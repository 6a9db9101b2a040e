package multilevel

import (
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
)

// earlier is what a run leaves to a later one that begins with its last values.
type earlier struct {
	methods     int     // of the run: 2 if they alternate
	work        float64 // of all steps
	started     bool    // multigrid has begun
	omega       float64 // of SOR; 0: it was not used
	alternation method.Alternation
}

// Fields implements iterate.State.
func (e *earlier) Fields(visit func(field any)) {
	visit(&e.methods)
	visit(&e.alternation.SOR)
	visit(&e.work)
	visit(&e.started)
	visit(&e.omega)
	e.alternation.Fields(visit)
}

// leave returns the state of this run for a later one.
func (c *cycleDriver) leave() []byte {
	e := earlier{methods: len(c.methods), work: c.spent, alternation: c.alternation}
	for i, m := range c.methods {
		switch m := m.(type) {
		case *redBlack:
			e.omega = m.omega()
		case *multigrid:
			e.started = c.prepared[i] && m.continues
		}
	}
	return iterate.EncodeState(&e)
}

// adopt prepares the methods to go on as in the earlier run, whose state it returns. It returns nil if there is none, or if
// it is of other methods or of another version of the program.
func (c *cycleDriver) adopt() *earlier {
	state := c.peer.config.Earlier
	c.peer.config.Earlier = nil // the next time step begins
	var e earlier
	if state == nil || iterate.DecodeState(state, &e) != nil || e.methods != len(c.methods) ||
		e.alternation.SOR != c.alternation.SOR {
		return nil
	}
	c.alternation = e.alternation
	c.use(c.alternation.Current() % e.methods)
	for _, m := range c.methods {
		switch m := m.(type) {
		case *redBlack:
			if m.factor.Omega() == 0 && e.omega > 0 && e.omega < 2 {
				m.factor = method.NewAdaptiveOmega(e.omega, false)
			}
		case *multigrid:
			m.earlier = e.started && c.peer.steps.Total == 0
		}
	}
	return &e
}
