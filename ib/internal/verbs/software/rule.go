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
	Answer      bool // an acknowledgement, positive or negative
	Bytes       int  // of payload
}

// Fate is what becomes of a packet. The zero value delivers it at once.
type Fate struct {
	Drop   bool
	Delay  time.Duration // those behind it may overtake it
	Copies int           // more of it, after the same delay
}

// Rule decides about the packets of a fabric, one at a time. It must not call the
// fabric.
type Rule func(Packet) Fate

// SetRule makes a fabric faulty; nil makes it good again. What is delayed already comes.
func (f *Fabric) SetRule(r Rule) {
	f.ruleMu.Lock()
	defer f.ruleMu.Unlock()
	f.rule = r
	f.ruled.Store(r != nil)
}

func (f *Fabric) fate(p Packet) Fate {
	f.ruleMu.Lock()
	defer f.ruleMu.Unlock()
	if f.rule == nil {
		return Fate{}
	}
	return f.rule(p)
}

// Chances are a rule of chance: probabilities from 0 to 1.
type Chances struct {
	Seed       uint64
	Loss       float64
	Late       float64 // delayed by up to Delay
	Delay      time.Duration
	Duplicates float64
}

// Rule draws from a generator of its own: the same packets in the same order have the
// same fates.
func (c Chances) Rule() Rule {
	r := rand.New(rand.NewPCG(c.Seed, 0xfa7e))
	return func(Packet) Fate {
		lost, late, twice, d := r.Float64(), r.Float64(), r.Float64(), r.Float64()
		var f Fate
		f.Drop = lost < c.Loss
		if late < c.Late {
			f.Delay = time.Duration(d * float64(c.Delay))
		}
		if twice < c.Duplicates {
			f.Copies = 1
		}
		return f
	}
}
