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
	// The states of older versions end here.

	cycles   iterate.Iteration // of all runs
	worked   [2]float64        // likewise, by method
	stagnant iterate.Stagnation
	factor   method.AdaptiveOmega
	guard    method.Safeguard
	old      bool // an older version wrote it
}

// Fields implements iterate.State.
func (e *earlier) Fields(visit func(field any)) {
	visit(&e.methods)
	visit(&e.alternation.SOR)
	visit(&e.work)
	visit(&e.started)
	visit(&e.omega)
	if e.alternation.Fields(visit); e.old {
		return
	}
	visit(&e.cycles)
	visit(&e.worked[0])
	visit(&e.worked[1])
	e.stagnant.Fields(visit)
	e.factor.Fields(visit)
	e.guard.Fields(visit)
}

// leave returns the state of this run for a later one.
func (c *cycleDriver) leave() []byte {
	e := earlier{
		methods: len(c.methods), work: c.spent, alternation: c.alternation,
		cycles: c.before + c.cycle, worked: c.worked, stagnant: c.stagnant,
	}
	for i, m := range c.methods {
		switch m := m.(type) {
		case *redBlack:
			e.omega, e.factor = m.omega(), m.factor
		case *multigrid:
			if e.started = c.prepared[i] && m.continues; e.started {
				e.guard = m.guard
			} else if !c.prepared[i] && m.earlier != nil { // in an earlier run
				e.started, e.guard = true, *m.earlier
			}
		}
	}
	return iterate.EncodeState(&e)
}

// decodeEarlier returns the state of an earlier run, of this version or the one before. It returns nil if data is none.
func decodeEarlier(data []byte) *earlier {
	for _, old := range []bool{false, true} {
		if e := (&earlier{old: old}); data != nil && iterate.DecodeState(data, e) == nil {
			return e
		}
	}
	return nil
}

// adopt prepares the methods to go on as in the earlier run, whose state it returns. It returns nil if there is none, or if
// it is of other methods or of another version of the program.
func (c *cycleDriver) adopt() *earlier {
	e := decodeEarlier(c.peer.config.Earlier)
	c.peer.config.Earlier = nil // the next time step begins
	if e == nil || e.methods != len(c.methods) || e.alternation.SOR != c.alternation.SOR {
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
			if e.started && c.peer.steps.Total == 0 {
				m.earlier = &e.guard
			}
		}
	}
	return e
}

// resumeFrom goes on with the state of an earlier run of the same stationary problem, after the methods in use are prepared.
func (c *cycleDriver) resumeFrom(e *earlier) error {
	c.alternation.Continue(&e.alternation, e.work, c.spent)
	if e.old {
		return nil
	}
	c.before, c.worked, c.stagnant = e.cycles, e.worked, e.stagnant
	for i, m := range c.methods {
		m, sor := m.(*redBlack)
		if !sor || c.peer.config.Omega > 0 || e.omega == 0 {
			continue
		}
		if err := c.prepare(i); err != nil {
			return err
		}
		m.factor.Adopt(&e.factor)
	}
	return nil
}
