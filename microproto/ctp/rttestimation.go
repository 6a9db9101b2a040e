package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// RTTEstimation computes the retransmission time-out of RFC 6298: SRTT and RTTVAR
// by §2.2 and §2.3, Karn's rule (§3), back-off (§5.5) with a cap (§2.5). The floor of
// §2.4 is an option: a second would ruin a channel whose round trip is microseconds. So are
// the cap and the granularity, which is the least that the variance adds: a channel between
// clusters needs a cap that no round trip reaches and a margin (see p2psap.TablePolicy).
// Without a congestion window the back-off may end sooner: see collapse.
type RTTEstimation struct {
	floor, initial, most time.Duration
	granularity          time.Duration
	rto, smoothed        *time.Duration
	sent                 microproto.Attr[uint64]
	copies               microproto.Attr[uint32]
	rtt, least           *time.Duration // for the layer above
	limit                *uint64        // of a congestion window
	doubts               int            // samples in a row of which nobody knows the transmission
	rttState
}

// maxDoubts is after how many such samples only a measurement ends the back-off.
const maxDoubts = 3

type rttState struct {
	srtt, rttvar time.Duration
	sampled      bool
}

func newRTTEstimation(o microproto.Options) (microproto.MicroProtocol, error) {
	floor, err := option(o, OptionRTOFloor, int64(defaultRTOFloor), 1, int64(time.Hour))
	if err != nil {
		return nil, err
	}
	initial, err := option(o, OptionRTOInitial, max(floor, min(50*floor, int64(time.Second))), 1, int64(time.Hour))
	if err != nil {
		return nil, err
	}
	most, err := option(o, OptionRTOMax, max(floor, initial, int64(time.Second)), floor, int64(time.Hour))
	if err != nil {
		return nil, err
	}
	g, err := option(o, OptionGranularity, int64(100*time.Microsecond), 1, int64(time.Hour))
	return &RTTEstimation{
		floor: time.Duration(floor), initial: time.Duration(min(initial, most)),
		most: time.Duration(most), granularity: time.Duration(g),
	}, err
}

// Name implements microproto.MicroProtocol.
func (r *RTTEstimation) Name() string { return "RTTEstimation" }

// Attach implements microproto.MicroProtocol.
func (r *RTTEstimation) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	r.rto = microproto.LookupCell[time.Duration](b, cellRTO)
	r.sent = microproto.LookupAttr[uint64](b, attrSent)
	r.copies = microproto.LookupAttr[uint32](b, attrCopies)
	r.limit = microproto.LookupCell[uint64](b, cellLimit)
	r.smoothed = microproto.DeclareCell(b, cellSmoothed, time.Duration(0))
	r.rtt = microproto.DeclareCell(b, microproto.CellRTT, time.Duration(0))
	r.least = microproto.DeclareCell(b, microproto.CellMinRTT, time.Duration(0))
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) {
		if *r.rto = r.initial; r.sampled {
			*r.rto = r.timeout() // of an earlier composition
		}
	})
	microproto.Bind(b, microproto.DrainSession, microproto.Early, r.drain) // before Retransmit sets its timer
	microproto.Bind(b, SegmentSampled, microproto.Normal, r.sample)
	microproto.Bind(b, microproto.SegmentTimeout, microproto.Normal, func(*microproto.Exec, *microproto.Message) {
		*r.rto = min(2**r.rto, r.most) // §5.5
	})
	return nil
}

func (r *RTTEstimation) sample(x *microproto.Exec, m *microproto.Message) {
	rtt := x.Now().Sub(microproto.Instant(r.sent.Get(m)))
	if r.copies.Get(m) > 0 {
		r.collapse(rtt)
		return // Karn: nobody knows which transmission was acknowledged
	}
	r.doubts = 0
	if *r.least == 0 || rtt < *r.least {
		*r.least = max(rtt, 1)
	}
	r.update(rtt)
	*r.smoothed = r.srtt
	*r.rtt = r.srtt
}

// collapse ends the back-off when what was sent again seems to have been acknowledged: rtt
// after the last transmission, which is no round trip if it was an earlier one that came.
// Where nothing answers to congestion (the columns inside a cluster) many segments may be
// lost for long, and a time-out that only a measurement (§5.7) makes short again grows up to
// its cap, while faces that are never measured fill the line. That round trips have become
// longer is not to be missed: in a row it is believed a few times only.
func (r *RTTEstimation) collapse(rtt time.Duration) {
	if *r.limit != math.MaxUint64 || !r.sampled {
		return
	}
	if r.doubts++; r.doubts <= maxDoubts && rtt >= r.srtt/2 {
		*r.rto = r.timeout()
	}
}

// update takes a measurement (§2.2, §2.3).
func (r *RTTEstimation) update(rtt time.Duration) {
	if !r.sampled {
		r.srtt, r.rttvar, r.sampled = rtt, rtt/2, true
	} else {
		off := r.srtt - rtt
		if off < 0 {
			off = -off
		}
		r.rttvar = (3*r.rttvar + off) / 4
		r.srtt = (7*r.srtt + rtt) / 8
	}
	*r.rto = r.timeout()
}

func (r *RTTEstimation) timeout() time.Duration {
	return min(max(r.srtt+max(r.granularity, 4*r.rttvar), r.floor), r.most)
}
