package ctp

import (
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// Resize segments messages and reassembles them. It declares the cell with the largest segment.
// It makes the segments of a message in order, and messages one after the other, so that
// segments that arrive in order are reassembled in one buffer.
//
// Segmentation of a synchronous message pauses while Retransmit holds enough segments
// (cellPause), and resumes when segments are acknowledged: a long message must not take the
// whole pool, or no acknowledgement could arrive. After burst segments it continues in the next
// Advance, so that the layer above can drain. An asynchronous message is segmented at once,
// because its bytes may change afterwards; segments that find no room are dropped.
type Resize struct {
	named
	max     uint64
	segment *int
	backlog *int
	pause   *bool
	atOnce  *bool
	burst   int
	buffers *buffers
	posted  *posted
	offset  microproto.Attr[uint32]
	total   microproto.Attr[uint32]

	waiting      fifo.Queue[*microproto.Message] // messages not yet segmented completely, oldest first
	segmented    int                             // bytes of the first that are segmented
	started      bool                            // it has a segment
	segmenting   bool
	resumeQueued bool // resume is enqueued
	timer        microproto.TimerID

	message    assembled // the message that is being reassembled
	received   int       // bytes of it that have arrived
	assembling bool
}

// assembled is a reassembled message. Segment is its last segment, for the header. The handler
// of messageAssembled owns the contents and returns their memory to the buffers.
type assembled struct {
	Segment *microproto.Message
	contents
}

var messageAssembled = microproto.NewEvent[*assembled]("ctp.message.assembled")

func newResize(s *settings) microproto.MicroProtocol {
	return &Resize{named: s.named, max: min(longestMessage(s), s.queue(OptionReceive)-messageCost)}
}

func longestMessage(s *settings) uint64 {
	return option[uint64](s, OptionMessageMax, defaultMessageMax, 0, math.MaxInt32)
}

// Attach implements microproto.MicroProtocol.
func (r *Resize) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	r.offset = microproto.SteppedAttr[uint32](b, attrOffset, microproto.StepBytes)
	wireAttr(b, attrTotal, &r.total)
	declareCell(b, microproto.CellSegmentBytes, &r.segment, 0)
	declareCell(b, cellBacklog, &r.backlog, 0)
	declareCell(b, cellPause, &r.pause, false)
	declareCell(b, cellAtOnce, &r.atOnce, false)
	declareCell(b, cellBuffers, &r.buffers, buffers{})
	r.buffers.mostKept = b.Limits().Messages / keptOfLimit
	declareCell(b, cellPosted, &r.posted, posted{})
	r.posted.withdraw = r.evictPosted
	r.burst = min(maxBurst, max(1, b.Limits().Outputs/4))
	b.Common(microproto.CommonCase{
		Send: r.sendsAlone, Expect: r.expectsAlone, Longest: minKept - 1, Priority: shapePriority,
	})
	microproto.Bind(b, microproto.OpenSession, microproto.First, r.open)
	bind(b, microproto.MessageFromUser, r.enqueue)
	microproto.Bind(b, microproto.SegmentFromNet, shapePriority, r.checkShape)
	microproto.Bind(b, microproto.SegmentAcked, microproto.Last, func(x *microproto.Exec, _ *microproto.Message) {
		if r.waiting.Len() > 0 && !r.resumeQueued {
			r.resumeQueued = true
			microproto.Enqueue(x, resume, r)
		}
	})
	bind(b, resume, func(x *microproto.Exec, _ *Resize) {
		r.resumeQueued = false
		r.segmentWaiting(x)
	})
	bind(b, resumeLater, func(x *microproto.Exec, _ *Resize) {
		r.timer = 0
		r.segmentWaiting(x)
	})
	microproto.Bind(b, microproto.SegmentToUser, microproto.Late, r.assemble)
	return nil
}

// resume continues segmentation after the chain that made room, resumeLater in a later Advance.
var (
	resume      = microproto.NewEvent[*Resize]("ctp.resize.resume")
	resumeLater = microproto.NewEvent[*Resize]("ctp.resize.resume.later")
)

const (
	// maxBurst bounds the segments made in one Advance; 64 KiB at the smallest MTU are 54.
	maxBurst = 1024
	// trainPause is the number of segments in trains after which segmentation pauses.
	trainPause = 8
)

// open sets the segment size: a multiple of 8 bytes, so that no float64 is divided.
func (r *Resize) open(x *microproto.Exec, _ struct{}) {
	*r.segment = x.MaxPayload() &^ 7
	if *r.segment <= 0 {
		x.Fail(fmt.Errorf("ctp: a frame of %d bytes has no room for 8 bytes after a header of %d", x.MTU(),
			x.HeaderBytes()))
	}
}

// shapePriority lets Resize check a segment before the micro-protocols that act on it.
const shapePriority = -500

// sendsAlone is the common case: a message of one segment, and nothing waits.
func (r *Resize) sendsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	r.total.Set(m, uint32(len(m.Payload)))
	return r.isNext(m)
}

func (r *Resize) isNext(m *microproto.Message) bool {
	return r.waiting.Len() == 0 && !r.segmenting && !*r.pause && m.Segments() == 1 && len(m.Payload) <= *r.segment
}

// expectsAlone is the common case: a message of one segment, which is too short to be kept.
func (r *Resize) expectsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	n := len(m.Payload)
	return !r.assembling && n <= *r.segment && uint64(n) <= r.max &&
		r.offset.Get(m) == 0 && int(r.total.Get(m)) == n
}

func (r *Resize) enqueue(x *microproto.Exec, m *microproto.Message) {
	if r.isNext(m) && x.AsSegment(m) {
		r.segmenting = true
		r.total.Set(m, uint32(len(m.Payload)))
		if microproto.Raise(x, microproto.SegmentFromUser, m) {
			x.Forward(m)
		}
		r.segmenting = false
		if r.waiting.Len() == 0 {
			return
		}
	} else {
		r.waiting.Push(m)
	}
	r.segmentWaiting(x)
}

// segmentWaiting makes segments of the waiting messages, as far as the channel takes them now.
func (r *Resize) segmentWaiting(x *microproto.Exec) {
	if r.segmenting {
		return // called in the chain of a segment
	}
	r.segmenting = true
	for n := 0; r.waiting.Len() > 0; n++ {
		m := *r.waiting.Front()
		if r.segmented >= len(m.Payload) && r.started {
			r.popWaiting()
			x.Done(m)
			continue
		}
		if *r.pause {
			break // SegmentAcked resumes
		}
		if n > 0 && n >= min(r.burst, r.trainBurst(x)) && !*r.atOnce {
			r.resumeAfter(x, 0)
			break
		}
		s, err := x.NewMessage(microproto.Down)
		if err != nil && *r.atOnce {
			r.popWaiting()
			x.Drop(m, "no message for a segment")
			break
		}
		if err != nil {
			r.resumeAfter(x, poolDelay)
			break
		}
		n += r.nextSegment(x, s, m) - 1
	}
	*r.backlog = r.waiting.Len()
	r.segmenting = false
}

func (r *Resize) popWaiting() {
	r.segmented, r.started = 0, false
	r.waiting.Drop()
}

// trainLength returns how many segments of a message of total bytes form a train: as many as
// possible if other messages wait, otherwise about the same number in each of its trains.
func (r *Resize) trainLength(x *microproto.Exec, total int) int {
	if total <= *r.segment {
		return 1
	}
	most := x.TrainSegments(*r.segment)
	if r.waiting.Len() > 1 || most == 1 {
		return most
	}
	segments := (total + *r.segment - 1) / *r.segment
	trains := (segments + most - 1) / most
	return (segments + trains - 1) / trains
}

// trainBurst returns after how many segments segmentation continues in the next Advance. A
// single message in trains pauses after each train, so that the other end processes the first
// while this end makes the next.
func (r *Resize) trainBurst(x *microproto.Exec) int {
	if r.waiting.Len() == 1 && x.TrainSegments(*r.segment) > 1 {
		return trainPause
	}
	return r.burst
}

// nextSegment makes s the next segment or train of m, forwards it and returns the number of its
// segments.
func (r *Resize) nextSegment(x *microproto.Exec, s, m *microproto.Message) int {
	n := min(*r.segment*r.trainLength(x, len(m.Payload)), len(m.Payload)-r.segmented)
	x.Share(s, m, m.Payload[r.segmented:r.segmented+n:r.segmented+n])
	x.FormTrain(s, *r.segment)
	segments := s.Segments()
	r.offset.Set(s, uint32(r.segmented))
	r.total.Set(s, uint32(len(m.Payload)))
	r.segmented += n
	r.started = true
	if microproto.Raise(x, microproto.SegmentFromUser, s) {
		x.Forward(s)
	}
	return segments
}

// poolDelay is the delay before another attempt to take a message from the empty pool.
const poolDelay = time.Millisecond

func (r *Resize) resumeAfter(x *microproto.Exec, d time.Duration) {
	if r.timer == 0 {
		r.timer = microproto.RaiseAfter(x, resumeLater, d, r)
	}
}

// assemble appends a segment to the message that is being reassembled. No Resize sends segments
// in another order: one that does not continue the message is dropped together with it.
func (r *Resize) assemble(x *microproto.Exec, m *microproto.Message) {
	o, t := int(r.offset.Get(m)), int(r.total.Get(m))
	if r.assembling && (o != r.received || t != r.message.length) || !r.assembling && o != 0 {
		r.abandon(x)
		if o != 0 {
			x.Drop(m, "segment out of place")
			return
		}
	}
	if !r.assembling {
		r.begin(m, t)
	}
	kept := r.add(x, m, o)
	r.received += m.Length()
	if r.received == t {
		r.message.Segment, r.assembling = m, false
		microproto.Raise(x, messageAssembled, &r.message)
		r.message, r.received = assembled{}, 0
	}
	if !kept {
		x.Done(m)
	}
}

// add adds a segment to the message at an offset and reports whether it keeps the segment.
func (r *Resize) add(x *microproto.Exec, m *microproto.Message, offset int) (kept bool) {
	c := &r.message.contents
	if c.data == nil {
		if r.buffers.keep(c, m) {
			return true
		}
		r.buffers.finish(x, r.buffers.flatten(c))
	}
	m.CopyTo(c.data[offset:])
	return false
}

func (r *Resize) abandon(x *microproto.Exec) {
	if !r.assembling {
		return
	}
	switch c := &r.message.contents; {
	case c.posted:
		r.posted.claimed = false
	case c.data != nil:
		r.buffers.put(c.data)
	default:
		r.buffers.finish(x, c.parts)
	}
	r.message, r.assembling = assembled{}, false
}

// checkShape drops segments whose offset and lengths no Resize makes. An acknowledgement without
// payload passes as an empty message; its own micro-protocol ends it.
func (r *Resize) checkShape(x *microproto.Exec, m *microproto.Message) {
	o, t := uint64(r.offset.Get(m)), uint64(r.total.Get(m))
	n := uint64(m.Length())
	bad := o+n > t || t > r.max || (n == 0 && t != 0)
	if !bad && t != 0 && *r.segment > 0 {
		s := uint64(*r.segment)
		bad = uint32(o)%uint32(s) != 0 || n != min(s*uint64(m.Segments()), t-o) ||
			m.Segments() > 1 && uint64(m.Unit()) != s
	}
	if bad {
		x.Drop(m, "malformed segment")
	}
}
