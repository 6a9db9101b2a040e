package ctp

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Resize cuts messages into segments and puts them together again. It announces
// the largest segment in a cell. Segments of one message are cut in order and
// messages one after the other, so that what comes in order is put together in one
// buffer.
//
// A synchronous message is cut as the channel takes it: cutting pauses while
// Retransmit holds enough (cellPause) and goes on when segments have been
// acknowledged, so that a long message never takes the whole pool, without which
// no acknowledgement could come in; and after burst segments it goes on in the
// next Advance, so that the layer above can drain. An asynchronous message is cut at
// once, since its bytes may change afterwards; what finds no room is dropped.
type Resize struct {
	max     int64
	segment *int
	backlog *int
	pause   *bool
	atOnce  *bool
	burst   int
	buffers *buffers
	posted  *posted
	offset  microproto.Attr[uint32]
	total   microproto.Attr[uint32]

	waiting fifo[*microproto.Message] // messages not yet cut whole, oldest first
	cut     int                       // bytes of the first that have been cut
	started bool                      // its first segment has been cut
	cutting bool
	asked   bool // resume has been enqueued
	timer   microproto.TimerID

	whole assembled // the message that is being put together
	have  int       // bytes of it that have come
	busy  bool      // there is one
}

// assembled is a message put together: Segment is its last segment (for header
// fields), Data belongs to who handles MessageAssembled, who gives it back to the
// buffers; when it is Posted, to who waits for it.
type assembled struct {
	Segment *microproto.Message
	Data    []byte
	Posted  bool
}

// messageAssembled is raised by Resize for each message that has come whole.
var messageAssembled = microproto.NewEvent[*assembled]("ctp.message.assembled")

func newResize(o microproto.Options) (microproto.MicroProtocol, error) {
	most, err := option(o, OptionMessageMax, defaultMessageMax, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	queue, err := option(o, OptionReceive, defaultReceive, messageCost, anyPositive)
	return &Resize{max: min(most, queue-messageCost)}, err
}

// Name implements microproto.MicroProtocol.
func (r *Resize) Name() string { return "Resize" }

// Attach implements microproto.MicroProtocol.
func (r *Resize) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	r.offset = microproto.SteppedAttr[uint32](b, attrOffset, microproto.StepBytes)
	r.total = microproto.WireAttr[uint32](b, attrTotal)
	r.segment = microproto.DeclareCell(b, microproto.CellSegmentBytes, 0)
	r.backlog = microproto.DeclareCell(b, cellBacklog, 0)
	r.pause = microproto.DeclareCell(b, cellPause, false)
	r.atOnce = microproto.DeclareCell(b, cellAtOnce, false)
	r.buffers = microproto.DeclareCell(b, cellBuffers, buffers{})
	r.posted = microproto.DeclareCell(b, cellPosted, posted{})
	r.posted.withdraw = r.moveOut
	r.burst = min(maxBurst, max(1, b.Limits().Outputs/4))
	microproto.Bind(b, microproto.OpenSession, microproto.First, r.open)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Normal, r.take)
	microproto.Bind(b, microproto.SegmentFromNet, -500, r.check)
	microproto.Bind(b, microproto.SegmentAcked, microproto.Last, func(x *microproto.Exec, _ *microproto.Message) {
		if r.waiting.n > 0 && !r.asked {
			r.asked = true
			microproto.Enqueue(x, resume, r)
		}
	})
	microproto.Bind(b, resume, microproto.Normal, func(x *microproto.Exec, _ *Resize) {
		r.asked = false
		r.pump(x)
	})
	microproto.Bind(b, resumeLater, microproto.Normal, func(x *microproto.Exec, _ *Resize) {
		r.timer = 0
		r.pump(x)
	})
	microproto.Bind(b, microproto.SegmentToUser, microproto.Late, r.assemble)
	return nil
}

// resume goes on cutting once the chain that made room has ended, resumeLater in
// the next Advance.
var (
	resume      = microproto.NewEvent[*Resize]("ctp.resize.resume")
	resumeLater = microproto.NewEvent[*Resize]("ctp.resize.resume.later")
)

// maxBurst is the number of segments cut in one go; a message of 64 KiB at the
// smallest MTU takes 54.
const maxBurst = 1024

// trainPause is how many segments are enough of a train to pause behind it.
const trainPause = 8

// open announces the segment size: a multiple of 8 bytes, so that no float64 is
// ever cut in two.
func (r *Resize) open(x *microproto.Exec, _ struct{}) {
	*r.segment = x.MaxPayload() &^ 7
	if *r.segment <= 0 {
		x.Fail(fmt.Errorf("ctp: frames of %d bytes leave no room for 8 bytes behind %d of header", x.MTU(), x.HeaderBytes()))
	}
}

func (r *Resize) take(x *microproto.Exec, m *microproto.Message) {
	r.waiting.push(m)
	r.pump(x)
}

// pump cuts what waits, as far as the channel takes it now.
func (r *Resize) pump(x *microproto.Exec) {
	if r.cutting {
		return // a segment's own chain asked
	}
	r.cutting = true
	for n := 0; r.waiting.n > 0; n++ {
		m := *r.waiting.front()
		if r.cut >= len(m.Payload) && r.started {
			r.waiting.pop()
			r.cut, r.started = 0, false
			x.Done(m)
			continue
		}
		if *r.pause {
			break // SegmentAcked resumes
		}
		if n > 0 && n >= min(r.burst, r.trainBurst(x)) && !*r.atOnce {
			r.later(x, 0)
			break
		}
		s, err := x.NewMessage(microproto.Down)
		if err != nil && *r.atOnce {
			r.waiting.pop()
			r.cut, r.started = 0, false
			x.Drop(m, "no message for a segment")
			break
		}
		if err != nil {
			r.later(x, poolDelay)
			break
		}
		n += r.next(x, s, m) - 1
	}
	*r.backlog = r.waiting.n
	r.cutting = false
}

// train is how many segments of a message of total bytes go as one: as many as may,
// where others wait behind it, else about the same number in each of its trains.
func (r *Resize) train(x *microproto.Exec, total int) int {
	most := x.TrainSegments(*r.segment)
	if r.waiting.n > 1 {
		return most
	}
	segments := max(1, (total+*r.segment-1) / *r.segment)
	trains := (segments + most - 1) / most
	return (segments + trains - 1) / trains
}

// trainBurst is after how many segments cutting goes on in the next Advance: where
// they go in trains after each of them, so that the other end has begun with the first
// while this one makes the next; where other messages wait, it has enough to do.
func (r *Resize) trainBurst(x *microproto.Exec) int {
	if r.waiting.n == 1 && x.TrainSegments(*r.segment) > 1 {
		return trainPause
	}
	return r.burst
}

// next makes s the next segment of m, or as many as a train may have, sends it on its
// way and tells how many there were.
func (r *Resize) next(x *microproto.Exec, s, m *microproto.Message) int {
	n := min(*r.segment*r.train(x, len(m.Payload)), len(m.Payload)-r.cut)
	x.Share(s, m, m.Payload[r.cut:r.cut+n:r.cut+n])
	x.FormTrain(s, *r.segment)
	segments := s.Segments()
	r.offset.Set(s, uint32(r.cut))
	r.total.Set(s, uint32(len(m.Payload)))
	r.cut += n
	r.started = true
	if microproto.Raise(x, microproto.SegmentFromUser, s) {
		x.Forward(s)
	}
	return segments
}

// poolDelay is how long to wait for messages to come back to the pool.
const poolDelay = time.Millisecond

func (r *Resize) later(x *microproto.Exec, d time.Duration) {
	if r.timer == 0 {
		r.timer = microproto.RaiseAfter(x, resumeLater, d, r)
	}
}

// assemble puts segments together as they come, in order. What does not continue
// the message in progress was not sent so by any Resize and is dropped with it.
func (r *Resize) assemble(x *microproto.Exec, m *microproto.Message) {
	o, t := int(r.offset.Get(m)), int(r.total.Get(m))
	if r.busy && (o != r.have || t != len(r.whole.Data)) || !r.busy && o != 0 {
		r.abandon()
		if o != 0 {
			x.Drop(m, "segment out of place")
			return
		}
	}
	if !r.busy {
		r.begin(m, t)
	}
	r.have += m.CopyTo(r.whole.Data[o:])
	if r.have < t {
		x.Done(m)
		return
	}
	r.whole.Segment, r.busy = m, false
	microproto.Raise(x, messageAssembled, &r.whole)
	r.whole = assembled{}
	x.Done(m)
}

func (r *Resize) abandon() {
	if r.busy {
		if r.whole.Posted {
			r.posted.claimed = false
		} else {
			r.buffers.put(r.whole.Data)
		}
		r.whole, r.busy = assembled{}, false
	}
}

// check drops segments whose shape no Resize makes. Only segments that carry a
// message have a shape; an acknowledgement alone passes as an empty message and is
// taken out by its own micro-protocol before anybody stores it.
func (r *Resize) check(x *microproto.Exec, m *microproto.Message) {
	o, t, n := uint64(r.offset.Get(m)), uint64(r.total.Get(m)), uint64(m.Length())
	bad := o+n > t || t > uint64(r.max) || (n == 0 && t != 0)
	if !bad && t != 0 && *r.segment > 0 {
		s := uint64(*r.segment)
		bad = o%s != 0 || n != min(s*uint64(m.Segments()), t-o) || m.Segments() > 1 && uint64(m.Unit()) != s
	}
	if bad {
		x.Drop(m, "malformed segment")
	}
}
