package mptest

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Faults are the faults of a Link. Probabilities are per frame, from 0 to 1.
type Faults struct {
	Delay     time.Duration // one way
	Jitter    time.Duration // added, uniform in [0, Jitter); the order is kept
	Loss      float64
	Duplicate float64
	Reorder   float64       // the frame is delayed by up to ReorderBy, so that others overtake it
	ReorderBy time.Duration // 0: 4 × (Delay + Jitter) + 1 ms
	Corrupt   float64       // one bit of the frame flips
	// Rate is the bandwidth in bytes per second; 0: unlimited.
	Rate float64
	// Capacity bounds the frames in flight in each direction (default 4096). Further ones are
	// lost, as in a full queue.
	Capacity int
}

// String returns the faults in one line.
func (f Faults) String() string {
	return fmt.Sprintf("delay %v jitter %v loss %.3f duplicate %.3f reorder %.3f corrupt %.3f rate %.0f",
		f.Delay, f.Jitter, f.Loss, f.Duplicate, f.Reorder, f.Corrupt, f.Rate)
}

// LinkStats count the frames of one direction.
type LinkStats struct {
	Sent, Arrived                    uint64
	Lost, Cut, Overflowed            uint64 // at random; by a partition; beyond the capacity
	Duplicated, Reordered, Corrupted uint64
}

// Link is a faulty link between two ends, 0 and 1, in virtual time.
type Link struct {
	clock      *Clock
	rand       *rand.Rand
	directions [2]direction
}

// direction is the direction from one end.
type direction struct {
	faults   Faults
	cut      bool
	receive  func(microproto.Frame)
	last     microproto.Instant // latest arrival in order
	free     microproto.Instant // end of the transmission in progress
	inFlight int
	stats    LinkStats
}

// NewLink returns a link whose random faults are determined by seed.
func NewLink(clock *Clock, seed uint64, f Faults) *Link {
	l := &Link{clock: clock, rand: rand.New(rand.NewPCG(seed, 0x6c696e6b))}
	l.SetFaults(f)
	return l
}

// SetFaults changes the faults of both directions, for frames sent from now on.
func (l *Link) SetFaults(f Faults) {
	f.Capacity = cmp.Or(f.Capacity, 4096)
	f.ReorderBy = cmp.Or(f.ReorderBy, 4*(f.Delay+f.Jitter)+time.Millisecond)
	l.directions[0].faults, l.directions[1].faults = f, f
}

// Partition cuts or restores the direction from an end. Frames in flight arrive.
func (l *Link) Partition(from int, cut bool) { l.directions[from].cut = cut }

// Receive sets the function that takes the frames that arrive at an end. Without one they are
// released.
func (l *Link) Receive(end int, f func(microproto.Frame)) { l.directions[1-end].receive = f }

// Stats returns the counts of the direction from an end.
func (l *Link) Stats(from int) LinkStats { return l.directions[from].stats }

// InFlight returns the number of frames in flight, in both directions.
func (l *Link) InFlight() int { return l.directions[0].inFlight + l.directions[1].inFlight }

// Send takes a frame from an end. A Frame that holds several is divided at random into Frames that
// hold fewer, with separate faults.
func (l *Link) Send(from int, f microproto.Frame) {
	f = f.Flatten(plain{})
	for f.Segment > 0 && f.Segment < len(f.Data) {
		n := f.Segment * (1 + l.rand.IntN(f.Count()))
		if n >= len(f.Data) {
			break
		}
		first := f.Retain()
		first.Data = f.Data[:n:n]
		l.send(from, first)
		f = f.Slice(n, len(f.Data))
	}
	l.send(from, f)
}

func (l *Link) send(from int, f microproto.Frame) {
	w := &l.directions[from]
	w.stats.Sent++
	switch {
	case w.cut:
		w.stats.Cut++
		f.Release()
		return
	case l.happens(w.faults.Loss):
		w.stats.Lost++
		f.Release()
		return
	}
	if l.happens(w.faults.Duplicate) {
		w.stats.Duplicated++
		l.launch(w, copyOf(f))
	}
	l.launch(w, f)
}

// happens draws whether a fault of that probability happens.
func (l *Link) happens(probability float64) bool {
	return probability > 0 && l.rand.Float64() < probability
}

func (l *Link) launch(w *direction, f microproto.Frame) {
	if w.inFlight >= w.faults.Capacity {
		w.stats.Overflowed++
		f.Release()
		return
	}
	if len(f.Data) > 0 && l.happens(w.faults.Corrupt) {
		w.stats.Corrupted++
		g := copyOf(f)
		f.Release()
		f = g
		bit := l.rand.IntN(8 * len(f.Data))
		f.Data[bit/8] ^= 1 << (bit % 8)
	}
	at := l.arrival(w, len(f.Data))
	w.inFlight++
	l.clock.At(at, func() {
		w.inFlight--
		w.stats.Arrived++
		if w.receive == nil {
			f.Release()
			return
		}
		w.receive(f)
	})
}

// arrival returns the instant at which a frame of n bytes arrives. Frames keep their order unless
// they are reordered.
func (l *Link) arrival(w *direction, n int) microproto.Instant {
	start := l.clock.Now()
	if w.faults.Rate > 0 {
		start = max(start, w.free).Add(time.Duration(float64(n) / w.faults.Rate * 1e9))
		w.free = start
	}
	at := start.Add(w.faults.Delay)
	if w.faults.Jitter > 0 {
		at = at.Add(time.Duration(l.rand.Int64N(int64(w.faults.Jitter))))
	}
	at = max(at, w.last)
	if l.happens(w.faults.Reorder) {
		w.stats.Reordered++
		return at.Add(time.Duration(l.rand.Int64N(int64(w.faults.ReorderBy))))
	}
	w.last = at
	return at
}

type plain struct{}

// Acquire implements microproto.FrameSource.
func (plain) Acquire(n int) microproto.Frame { return microproto.Frame{Data: make([]byte, n)} }

// copyOf returns a frame with the same bytes in memory of its own.
func copyOf(f microproto.Frame) microproto.Frame {
	return microproto.Frame{Peer: f.Peer, Data: bytes.Clone(f.Data), Segment: f.Segment}
}
