// Package pacing is a micro-protocol of a third party: it leaves a gap between segments.
package pacing

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// OptionGap is the key of the least time from one segment to the next, in nanoseconds; Row sets 1 ms.
const OptionGap = "pacing.gap.ns"

// Pacing transmits a segment at most once a gap, retransmissions included. Acknowledgements without payload do not wait.
type Pacing struct {
	gap      time.Duration
	hold     microproto.HoldBit
	borrows  bool // the user may change the payload after Send
	waiting  []*microproto.Message
	earliest microproto.Instant // of the next segment
}

var due = microproto.NewEvent[*Pacing]("pacing.due")

// New returns a Pacing with the settings of a composition.
func New(o microproto.Options) (microproto.MicroProtocol, error) {
	gap := o[OptionGap]
	if gap <= 0 || gap > int64(time.Minute) {
		return nil, fmt.Errorf("pacing: option %q is %d; 1 to %d are allowed", OptionGap, gap, time.Minute)
	}
	return &Pacing{gap: time.Duration(gap)}, nil
}

// Row returns Pacing as an optional row of the columns of Ethernet, with and without a congestion window.
func Row() microproto.Row {
	columns := slices.DeleteFunc(microproto.Columns(), func(c microproto.Column) bool { return c.InfiniBand })
	return microproto.Row{Protocol: "Pacing", New: New, Help: "leave a gap between segments", Columns: columns,
		Options: microproto.Options{OptionGap: int64(time.Millisecond)}}
}

// Name implements microproto.MicroProtocol.
func (p *Pacing) Name() string { return "Pacing" }

// Attach implements microproto.MicroProtocol.
func (p *Pacing) Attach(b *microproto.Binder) error {
	p.hold = b.HoldBit("Pacing.gap")
	p.borrows = microproto.TryCell[uint64](b, microproto.CellOverwritten) != nil // an asynchronous column
	microproto.Bind(b, microproto.SegmentReady, microproto.Late, p.ready)
	microproto.Bind(b, due, microproto.Normal, func(x *microproto.Exec, _ *Pacing) { p.release(x) })
	return nil
}

func (p *Pacing) ready(x *microproto.Exec, m *microproto.Message) {
	switch {
	case len(m.Payload) == 0:
	case len(p.waiting) == 0 && x.Now() >= p.earliest:
		p.earliest = x.Now().Add(p.gap)
	case p.borrows && x.Own(m) != nil:
		x.Drop(m, "no memory to wait in")
	default:
		x.Hold(m, p.hold)
		if p.waiting = append(p.waiting, m); len(p.waiting) == 1 {
			microproto.RaiseAfter(x, due, p.earliest.Sub(x.Now()), p)
		}
	}
}

// release releases the oldest segment that has not ended meanwhile.
func (p *Pacing) release(x *microproto.Exec) {
	for lives := false; !lives && len(p.waiting) > 0; p.waiting = slices.Delete(p.waiting, 0, 1) {
		if lives = x.Release(p.waiting[0], p.hold); lives {
			p.earliest = x.Now().Add(p.gap)
		}
	}
	if len(p.waiting) > 0 {
		microproto.RaiseAfter(x, due, p.gap, p)
	}
}
