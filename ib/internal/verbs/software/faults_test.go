package software_test

import (
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
)

// faultRates are the probabilities, 0 to 1, of a random rule.
type faultRates struct {
	Seed          uint64
	DropRate      float64
	DelayRate     float64 // delayed by up to MaxDelay
	MaxDelay      time.Duration
	DuplicateRate float64
}

// rule returns a rule with a random generator of its own: the same packets in the same order
// have the same faults.
func (c faultRates) rule() software.Rule {
	r := rand.New(rand.NewPCG(c.Seed, 0xfa7e))
	return func(software.Packet) software.Fault {
		lost, late, twice, d := r.Float64(), r.Float64(), r.Float64(), r.Float64()
		var f software.Fault
		f.Drop = lost < c.DropRate
		if late < c.DelayRate {
			f.Delay = time.Duration(d * float64(c.MaxDelay))
		}
		if twice < c.DuplicateRate {
			f.Copies = 1
		}
		return f
	}
}
