package control

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// event is what happens at an end of a long path.
type event struct {
	at microproto.Instant
	do func()
}

// longWire carries messages and connections of two ends, each half a round trip late.
type longWire struct {
	now    microproto.Instant
	rtt    time.Duration
	ends   [2]*end
	last   uint64 // number of the last connection
	events []event
}

func (w *longWire) after(d time.Duration, do func()) {
	at := w.now.Add(d)
	i, _ := slices.BinarySearchFunc(w.events, at+1, func(e event, at microproto.Instant) int { return int(e.at - at) })
	w.events = slices.Insert(w.events, i, event{at, do})
}

// carry takes the orders of an end. A connection that is dialled has an end at the other end after two round trips and a half,
// and at this one after three: those of TCP, TLS and the proofs.
func (w *longWire) carry(i int) {
	e, other := w.ends[i], w.ends[1-i]
	for _, o := range e.out {
		switch o.Kind {
		case OutDial:
			w.last++
			id := w.last
			w.after(5*w.rtt/2, func() { other.a.ConnectionUp(w.now, id, "") })
			w.after(3*w.rtt, func() { e.a.ConnectionUp(w.now, id, o.Peer) })
		case OutSend:
			w.after(w.rtt/2, func() { other.a.Receive(w.now, o.Conn, o.Data) })
		case OutHangup:
			w.after(w.rtt/2, func() { other.a.ConnectionDown(w.now, o.Conn) })
		}
	}
	e.out = nil
}

func (w *longWire) run(d time.Duration) {
	for end := w.now.Add(d); ; {
		next := end
		if len(w.events) > 0 {
			next = min(next, w.events[0].at)
		}
		for _, e := range w.ends {
			next = min(next, max(e.a.Deadline(), w.now))
		}
		if w.now = next; w.now >= end {
			return
		}
		for len(w.events) > 0 && w.events[0].at <= w.now {
			do := w.events[0].do
			w.events = w.events[1:]
			do()
		}
		for i, e := range w.ends {
			if e.a.Deadline() <= w.now {
				e.a.Advance(w.now)
			}
			w.carry(i)
		}
	}
}

// newLongWire returns two ends that dial each other at once, and still measure their distance.
func newLongWire(t *testing.T, rtt time.Duration) *longWire {
	w := &longWire{now: 1, rtt: rtt, ends: [2]*end{newEnd("a", 1), newEnd("b", 2)}}
	for i, e := range w.ends {
		e.slow, e.a.Handshake = true, 10*time.Second
		require.NoError(t, e.a.Connect(w.now, string(rune('b'-i)), "address"))
	}
	return w
}

// Of two connections that both ends have dialled, both keep the same one, however long the round trip is.
func TestBothEndsKeepOneConnection(t *testing.T) {
	for _, rtt := range []time.Duration{0, 100 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second} {
		w := newLongWire(t, rtt)
		w.run(6*rtt + 2*time.Second)
		for _, e := range w.ends {
			require.NotNil(t, e.peer.Conn, "%v", rtt)
			require.Len(t, e.a.Conns, 1, "%v", rtt)
		}
		require.Equal(t, w.ends[0].peer.Conn.ID, w.ends[1].peer.Conn.ID, "%v", rtt)
	}
}

// A connection whose messages come once a round trip is not deaf.
func TestLongRoundTripsAreNotDeaf(t *testing.T) {
	e := newEnd("b", 1)
	for rtt, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, time.Second: 3 * time.Second, 1500 * time.Millisecond: 4 * time.Second, 3 * time.Second: 7 * time.Second,
	} {
		require.Equal(t, want, e.a.quiet(&Peer{RTT: rtt}, deafAfter), "%v", rtt)
	}
}
