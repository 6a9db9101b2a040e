package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// RTTEstimation computes the retransmission time-out of RFC 6298: SRTT and RTTVAR (§2.2, §2.3),
// Karn's rule (§3), exponential back-off (§5.5) with a maximum (§2.5). The floor of §2.4 is an
// option, because the RFC's second is too long for a channel whose round trip is microseconds.
// The maximum and the granularity, the smallest margin over SRTT, are options too: a channel
// between clusters needs larger ones (see p2psap.TablePolicy). Without a congestion window the
// back-off may end early; see endBackoff.
//
// With OptionProbeMargin it also computes the time-out of tail-loss probes: that of RFC 9002
// §6.2.1, with a margin of at least SRTT/4.
type RTTEstimation struct {
	named
	floor, initial, max time.Duration
	granularity, margin time.Duration
	probe               *time.Duration
	rto, smoothed       *time.Duration
	sent                microproto.Attr[uint64]
	copies              microproto.Attr[uint32]
	rtt, least          *time.Duration // cells for the layer above
	limit               *uint64        // of the congestion window
	ambiguous           int            // consecutive samples of retransmitted segments
	rttState
}

// maxAmbiguous is the number of ambiguous samples after which only a measurement ends the
// back-off.
const maxAmbiguous = 3

type rttState struct {
	srtt, rttvar time.Duration
	sampled      bool
}

func newRTTEstimation(s *settings) microproto.MicroProtocol { return s.rttEstimation() }

func (s *settings) rttEstimation() *RTTEstimation {
	floor := s.rtoFloor()
	initial := option(s, OptionRTOInitial, max(floor, min(50*floor, time.Second)), 1, time.Hour)
	limit := option(s, OptionRTOMax, max(floor, initial, time.Minute), floor, time.Hour)
	return &RTTEstimation{named: s.named, floor: floor, initial: min(initial, limit), max: limit,
		granularity: option(s, OptionGranularity, 100*time.Microsecond, 1, time.Hour),
		margin:      option(s, OptionProbeMargin, 0, 0, time.Hour)}
}

// Attach implements microproto.MicroProtocol.
func (r *RTTEstimation) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupCell(b, cellRTO, &r.rto)
	lookupCell(b, cellProbe, &r.probe)
	lookupAttr(b, attrSent, &r.sent)
	lookupAttr(b, attrCopies, &r.copies)
	lookupCell(b, cellLimit, &r.limit)
	lookupCell(b, cellSmoothed, &r.smoothed)
	declareCell(b, microproto.CellRTT, &r.rtt, 0)
	declareCell(b, microproto.CellMinRTT, &r.least, 0)
	b.Common(microproto.CommonCase{Send: microproto.Always, Expect: microproto.Always})
	bind(b, microproto.OpenSession, func(*microproto.Exec, struct{}) {
		if *r.rto = r.measured(); r.sampled { // imported
			*r.probe = r.probeTimeout()
		}
	})
	microproto.Bind(b, microproto.DrainSession, microproto.Early, r.drain) // before Retransmit sets its timer
	bind(b, SegmentSampled, r.sample)
	microproto.Bind(b, microproto.PathMoved, microproto.Early, func(*microproto.Exec, struct{}) { *r.rto = r.measured() })
	bind(b, microproto.SegmentTimeout, func(*microproto.Exec, *microproto.Message) {
		*r.rto = min(2**r.rto, r.max) // §5.5
	})
	return nil
}

func (r *RTTEstimation) sample(x *microproto.Exec, m *microproto.Message) {
	rtt := x.Now().Sub(microproto.Instant(r.sent.Get(m)))
	if r.copies.Get(m) > 0 {
		r.endBackoff(rtt)
		return // Karn's rule: it is not known which transmission was acknowledged
	}
	r.ambiguous = 0
	if *r.least == 0 || rtt < *r.least {
		*r.least = max(rtt, 1)
	}
	r.update(rtt)
	*r.smoothed, *r.probe = r.srtt, r.probeTimeout()
	*r.rtt = r.srtt
}

// endBackoff ends the back-off when a retransmitted segment is acknowledged, rtt after its last
// transmission. By §5.7 only a measurement ends the back-off. In a column without congestion
// control many segments may be lost for a long time, and the time-out would grow to its maximum
// for want of a measurement. The sample is ambiguous (the acknowledgement may be of an earlier
// transmission), so only a few in a row count: the round trip may have become longer.
func (r *RTTEstimation) endBackoff(rtt time.Duration) {
	if *r.limit != math.MaxUint64 || !r.sampled {
		return
	}
	if r.ambiguous++; r.ambiguous <= maxAmbiguous && rtt >= r.srtt/2 {
		*r.rto = r.timeout()
	}
}

// update adds a measurement (§2.2, §2.3).
func (r *RTTEstimation) update(rtt time.Duration) {
	if !r.sampled {
		r.srtt, r.rttvar = rtt, rtt/2
		r.sampled = true
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

// measured returns the time-out without a back-off.
func (r *RTTEstimation) measured() time.Duration {
	if r.sampled {
		return r.timeout()
	}
	return r.initial
}

// probeTimeout returns the time after which the last segment is probed, 0 for none.
func (r *RTTEstimation) probeTimeout() time.Duration {
	if r.margin == 0 {
		return 0
	}
	return r.srtt + max(r.margin, r.srtt/4, 4*r.rttvar)
}

func (r *RTTEstimation) timeout() time.Duration {
	return min(max(r.srtt+max(r.granularity, 4*r.rttvar), r.floor), r.max)
}
