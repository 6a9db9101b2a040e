package ctp

import (
	"math/bits"

	"github.com/p2pdc/p2pdc/microproto"
)

// has reports whether entry i is known to have arrived.
func (r *Retransmit) has(i int) bool { return r.arrived.has(r.una + uint32(i)) }

func (r *Retransmit) leaveFlight(e *entry, number uint32) {
	if !r.arrived.has(number) {
		r.inCount--
		r.inFlight -= int(e.length)
	}
}

// markReceived notes segments that have arrived: bit i stands for number first + i.
func (r *Retransmit) markReceived(x *microproto.Exec, first uint32, seen uint64) {
	sent := min(r.transmitted(), fifoWindow)
	for seen &^= r.arrived.from(first); seen != 0; seen &= seen - 1 {
		number := first + uint32(bits.TrailingZeros64(seen))
		i := int(int32(number - r.una))
		if i <= 0 {
			continue
		}
		if i >= sent {
			return // beyond the segments sent
		}
		e := r.entries.At(i)
		if *r.selective.on {
			r.arrive(x, e, number)
		}
		r.leaveFlight(e, number)
		r.arrived.add(number)
	}
}

// sample raises SegmentSampled for the newest segment that this acknowledgement is the first to
// acknowledge. A segment that arrived earlier and could not be reported is none: either it was beyond the bitmap, or
// the oldest segment is acknowledged only now because it had to be sent again.
func (r *Retransmit) sample(x *microproto.Exec, n int, a Ack) {
	newest := -1
	if highest, ok := a.highest(); ok {
		newest = int(int32(highest - r.una))
	}
	reported := newest >= 0 && newest < r.transmitted() && before(r.una+uint32(newest), r.prompt)
	if !reported || r.has(newest) {
		newest = n - 1
	}
	if newest < 0 || newest >= r.entries.Len() || r.has(newest) {
		return
	}
	if newest < n && r.copies.Get(r.entries.Front().m) > 0 {
		newest = 0
	}
	microproto.Raise(x, SegmentSampled, r.entries.At(newest).m)
}
