package software

import (
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Packet describes a packet to a rule.
type Packet struct {
	From, To    uint32 // queue pair numbers
	Transport   verbs.Transport
	Operation   verbs.Operation // of the message, also for its acknowledgements
	PSN         uint32
	First, Last bool
	Ack         bool // an acknowledgement, positive or negative
	Bytes       int  // of payload
}

// Fault is the effect of a rule on a packet. The zero value delivers the packet at once.
type Fault struct {
	Drop   bool
	Delay  time.Duration // later packets may overtake it
	Copies int           // duplicates, which have the same delay
}

// Rule returns the faults of a fabric's packets. It is called for one packet at a time and must
// not call the fabric.
type Rule func(Packet) Fault

// SetRule sets the rule, or removes it if r is nil. Packets already delayed still arrive.
func (f *Fabric) SetRule(r Rule) {
	f.ruleMu.Lock()
	defer f.ruleMu.Unlock()
	f.rule = r
	f.hasRule.Store(r != nil)
}

func (f *Fabric) faultOf(p Packet) Fault {
	f.ruleMu.Lock()
	defer f.ruleMu.Unlock()
	if f.rule == nil {
		return Fault{}
	}
	return f.rule(p)
}

// FaultRates are the probabilities, 0 to 1, of a random rule.
type FaultRates struct {
	Seed          uint64
	DropRate      float64
	DelayRate     float64 // delayed by up to MaxDelay
	MaxDelay      time.Duration
	DuplicateRate float64
}

// Rule returns a rule with a random generator of its own: the same packets in the same order
// have the same faults.
func (c FaultRates) Rule() Rule {
	r := rand.New(rand.NewPCG(c.Seed, 0xfa7e))
	return func(Packet) Fault {
		lost, late, twice, d := r.Float64(), r.Float64(), r.Float64(), r.Float64()
		var f Fault
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
