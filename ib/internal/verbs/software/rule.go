package software

import (
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Packet is what a rule sees of a packet on its way.
type Packet struct {
	From, To    uint32 // queue pair numbers
	Transport   verbs.Transport
	Operation   verbs.Operation // of the message, not of an acknowledgement
	PSN         uint32
	First, Last bool
	Ack         bool // an acknowledgement, positive or negative
	Bytes       int  // of payload
}

// Fate is what becomes of a packet. The zero value delivers it at once.
type Fault struct {
	Drop   bool
	Delay  time.Duration // those behind it may overtake it
	Copies int           // more of it, after the same delay
}

// Rule decides about the packets of a fabric, one at a time. It must not call the
// fabric.
type Rule func(Packet) Fault

// SetRule makes a fabric faulty; nil makes it good again. What is delayed already comes.
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

// Chances are a rule of chance: probabilities from 0 to 1.
type FaultRates struct {
	Seed          uint64
	DropRate      float64
	DelayRate     float64 // delayed by up to Delay
	MaxDelay      time.Duration
	DuplicateRate float64
}

// Rule draws from a generator of its own: the same packets in the same order have the
// same fates.
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
