package control

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// end is a Host that marks a peer up at once and collects what it receives.
type end struct {
	a     *Associations
	name  string
	peer  *Peer
	got   []uint64
	out   []Output
	fault error // of the last message
	slow  bool  // it leaves the peer new
}

func newEnd(name string, seed uint64) *end {
	e := &end{name: name}
	e.a = NewAssociations(Config{
		Name: name, Incarnation: seed, PeerTimeout: 10 * time.Second, Heartbeat: time.Second, Handshake: time.Second,
		Peers: 2, PendingHellos: 4, Unacked: 1000, Rand: rand.New(rand.NewPCG(seed, 0)),
	}, e)
	return e
}

func (e *end) Hello(uint64, string) (*Hello, error) {
	return &Hello{Run: "r", Name: e.name, Network: path.Ethernet}, nil
}
func (e *end) AcceptOffer([]byte) (microproto.LinkAddr, error) { return 7, nil }
func (e *end) Added(p *Peer)                                   { e.peer = p }
func (e *end) Restarted(*Peer)                                 {}
func (e *end) Advance(microproto.Instant, *Peer)               {}
func (e *end) Deadline(*Peer) microproto.Instant               { return microproto.Never }
func (e *end) Heartbeat(*Peer) *Heartbeat                      { return &Heartbeat{} }
func (e *end) Pinged(microproto.Instant, *Peer, uint64)        {}
func (e *end) Silent(microproto.Instant, *Peer)                {}
func (e *end) Disconnected(microproto.Instant, *Peer)          {}
func (e *end) Changed()                                        {}
func (e *end) Emit(o Output)                                   { e.out = append(e.out, o) }
func (e *end) RefusedError(peer, reason string) error          { return fmt.Errorf("%s: %s", peer, reason) }
func (e *end) LostError(peer string, silent time.Duration, _ string) error {
	return fmt.Errorf("%s: %v", peer, silent)
}

func (e *end) Attached(_ microproto.Instant, p *Peer, _ *Hello, _ time.Duration) {
	if p.State == New && !e.slow {
		e.a.MarkUp(p)
	}
}

func (e *end) Receive(_ microproto.Instant, _ *Peer, b Body) error {
	if m, ok := b.(*Measured); ok && e.fault == nil {
		e.got = append(e.got, m.MinRTT)
	}
	return e.fault
}

// wire carries the messages of two ends, over connections that break at random.
type wire struct {
	t    *testing.T
	rand *rand.Rand
	now  microproto.Instant
	ends [2]*end
	last uint64 // number of the last connection; both ends use it
	up   bool
}

func newWire(t *testing.T, seed uint64) *wire {
	w := &wire{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: 1, ends: [2]*end{newEnd("a", seed+1), newEnd("b", seed+2)}}
	require.NoError(t, w.ends[1].a.Connect(w.now, "a", "address"))
	return w
}

// settle delivers everything, and breaks the connection before a message with a probability.
func (w *wire) settle(breaks float64) {
	for busy := true; busy; {
		busy = false
		for i, e := range w.ends {
			other := w.ends[1-i]
			for len(e.out) > 0 {
				o := e.out[0]
				e.out, busy = e.out[1:], true
				switch o.Kind {
				case OutDial:
					w.last++
					w.up = true
					other.a.ConnectionUp(w.now, w.last, "")
					e.a.ConnectionUp(w.now, w.last, o.Peer)
				case OutHangup:
					if o.Conn == w.last {
						w.cut()
					}
				case OutSend:
					if w.up && o.Conn == w.last && w.rand.Float64() < breaks {
						w.cut()
					}
					for range 1 + w.rand.IntN(2) { // a message may come twice
						if w.up && o.Conn == w.last {
							other.a.Receive(w.now, o.Conn, o.Data)
						}
					}
				}
			}
		}
	}
}

func (w *wire) cut() {
	w.up = false
	for _, e := range w.ends {
		e.a.ConnectionDown(w.now, w.last)
	}
}

func (w *wire) pass(d time.Duration, breaks float64) {
	for end := w.now.Add(d); w.now < end; w.now = w.now.Add(50 * time.Millisecond) {
		for _, e := range w.ends {
			if e.a.Deadline() <= w.now {
				e.a.Advance(w.now)
			}
		}
		w.settle(breaks)
	}
}

// Every sequenced message arrives once and in order, however often the connection breaks.
func TestSequencedMessagesSurviveConnections(t *testing.T) {
	for seed := range uint64(50) {
		w := newWire(t, seed)
		w.pass(3*time.Second, 0)
		var want []uint64
		for k := range uint64(200) {
			for _, e := range w.ends {
				e.a.Send(e.peer, KindMeasured, &Measured{MinRTT: k + 1})
			}
			want = append(want, k+1)
			w.pass(50*time.Millisecond, 0.05)
		}
		w.pass(10*time.Second, 0)
		for _, e := range w.ends {
			require.Equal(t, Up, e.peer.State, "seed %d: %v", seed, e.peer.Err)
			require.Equal(t, want, e.got, "seed %d, end %s", seed, e.name)
			require.Empty(t, e.peer.Unacked)
		}
		require.Positive(t, w.ends[0].a.Counters.Reconnect)
		require.Positive(t, w.ends[0].a.Counters.Duplicate)
		require.Zero(t, w.ends[0].a.Counters.Malformed)
	}
}

// A message that the host refuses ends the association: it would come again over every connection.
func TestRefusedMessageEndsTheAssociation(t *testing.T) {
	w := newWire(t, 1)
	w.pass(time.Second, 0)
	w.ends[0].fault = errors.New("out of turn")
	w.ends[1].a.Send(w.ends[1].peer, KindMeasured, &Measured{MinRTT: 1})
	w.settle(0)
	require.Equal(t, Lost, w.ends[0].peer.State)
	require.ErrorIs(t, w.ends[0].peer.Err, w.ends[0].fault)
	require.EqualValues(t, 1, w.ends[0].a.Counters.Malformed)
	require.False(t, w.ends[0].peer.Connected())
}

// The messages beyond the bound end the association, with an error that names the bound.
func TestUnackedMessagesAreBounded(t *testing.T) {
	w := newWire(t, 1)
	w.pass(time.Second, 0)
	e := w.ends[1]
	w.cut()
	for range e.a.Unacked + 1 {
		e.a.Send(e.peer, KindMeasured, &Measured{MinRTT: 1})
	}
	e.a.Advance(w.now)
	require.Equal(t, Lost, e.peer.State)
	require.ErrorIs(t, e.peer.Err, ErrLimit)
	require.ErrorContains(t, e.peer.Err, "more than 1000 control messages")
}

func TestDialsEveryAddress(t *testing.T) {
	p := Peer{addr: "10.0.0.2:7,[fd00::2]:8"}
	require.Equal(t, []string{"10.0.0.2:7", "[fd00::2]:8"}, p.dialAddrs())
	for i := range byte(20) {
		p.addresses = append(p.addresses, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, i, 2}), 24))
	}
	require.Equal(t, []string{"10.0.0.2:7", "[fd00::2]:8", "10.0.1.2:7"}, p.dialAddrs()[:3])
	require.Len(t, p.dialAddrs(), maxDials)
	p.addr = "a host"
	require.Equal(t, []string{"a host"}, p.dialAddrs())
}
