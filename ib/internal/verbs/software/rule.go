package software

import (
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
