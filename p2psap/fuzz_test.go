package p2psap

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// samples returns one message of each kind.
func samples() [][]byte {
	make := func(k control.Kind, sequence uint64, body control.Body) []byte {
		return control.Encode(k, sequence, 3, body)
	}
	hello := &control.Hello{
		Run: "r", Version: "v", Catalog: 1, Name: "b", Incarnation: 9, Host: "h", Process: 2, Cluster: "c",
		Addresses: prefixes("10.0.0.1/24", "fd00::1/64"), Network: Memory, Offer: []byte("b"),
		Rails: []Network{InfiniBand, Ethernet},
	}
	open := &control.Open{
		Session: 7, Name: "s", Mode: microproto.ModeSynchronous, Protocols: []string{"A", "B"}, Fingerprint: 5, Port: 6,
		FrameBytes: 1400, Network: InfiniBand, Round: 2, BaseBytes: 1472, ReceiveBytes: 65536,
		Slots: []control.Slot{{Tag: 1, Length: 64}}, Protect: uint8(ProtectNever),
	}
	protected := &control.Open{
		Session: 7, Name: "s", Mode: microproto.ModeAsynchronous, Network: Ethernet, Protect: uint8(ProtectAuto),
		Random: bytes.Repeat([]byte{7}, control.RandomBytes),
	}
	proposal := &control.Proposal{
		Ends:  control.Ends{To: 1, From: 2},
		Epoch: 3, Cause: control.CauseMonitor, Mode: microproto.ModeSynchronous, Network: InfiniBand,
		Round: 1, Distance: Far, Lossy: true, Protocols: []string{"A", "B"}, Fingerprint: 4, FrameBytes: 1400, Sent: 5,
	}
	refused := &control.Proposal{
		Ends:  control.Ends{To: 1, From: 2},
		Epoch: 255, Cause: control.CauseAccept, Mode: microproto.ModeAsynchronous, Network: Ethernet,
		Reason: "why not",
	}
	return [][]byte{
		make(control.KindRefusal, 0, &control.Refusal{Reason: "the name is in use"}),
		make(control.KindHello, 0, hello),
		make(control.KindHeartbeat, 0, &control.Heartbeat{ShortFrames: 3, LongFrames: 1 << 40}),
		make(control.KindOpen, 1, open),
		make(control.KindOpen, 1, protected),
		make(control.KindOpenAck, 2, &control.OpenAck{Ends: control.Ends{To: 1, From: 2}, FrameBytes: 1400, Network: Ethernet,
			Fingerprint: 5}),
		make(control.KindReject, 3, &control.Reject{Ends: control.Ends{To: 1, From: 2}, Reason: "why"}),
		make(control.KindClose, 4, &control.Close{Ends: control.Ends{To: 1, From: 2}, Accepted: 3}),
		make(control.KindCloseAck, 5, &control.Close{Ends: control.Ends{To: 1, From: 2}}),
		make(control.KindGoodbye, 6, nil),
		make(control.KindPropose, 7, proposal),
		make(control.KindPropose, 8, refused),
		make(control.KindSwitched, 9, &control.Switched{Ends: control.Ends{To: 1, From: 2}, Epoch: 3, Sent: 4,
			Accepted: 5, Stored: 6, Credit: 7}),
		make(control.KindPath, 10, &control.PathState{Network: InfiniBand, Round: 3, Stage: control.Offered,
			Offer: []byte("here")}),
		make(control.KindPath, 11, &control.PathState{Network: InfiniBand, Round: 3, Stage: control.Ready}),
		make(control.KindPath, 12, &control.PathState{Network: InfiniBand, Round: 3, Stage: control.Down, Reason: "why"}),
		make(control.KindDrained, 13, &control.Drained{Ends: control.Ends{To: 1, From: 2}, Epoch: 3}),
		make(control.KindPing, 0, &control.Echo{Number: 7}),
		make(control.KindPong, 0, &control.Echo{Number: 7}),
		make(control.KindMeasured, 7, &control.Measured{MinRTT: 123456}),
	}
}

// decode decodes a message and encodes it again.
func decode(msg []byte) ([]byte, error) {
	m, err := control.Parse(msg)
	if err != nil {
		return nil, err
	}
	if m.Version != control.Version {
		return nil, ErrMalformed
	}
	body, err := m.Decode()
	if err != nil {
		return nil, err
	}
	return control.Encode(m.Kind, m.Sequence, m.Ack, body), nil
}

func TestControlMessages(t *testing.T) {
	for _, msg := range samples() {
		again, err := decode(msg)
		require.NoError(t, err)
		require.Equal(t, msg, again)
		for i := range msg {
			_, err := decode(msg[:i])
			require.ErrorIs(t, err, ErrMalformed, "cut at %d", i)
		}
		_, err = decode(append(bytes.Clone(msg), 0))
		require.ErrorIs(t, err, ErrMalformed, "one byte more")
	}
	_, err := decode(make([]byte, MaxControlBytes+1))
	require.ErrorIs(t, err, ErrMalformed)
}

// A message that is accepted has one encoding: it is encoded as it was.
func FuzzControl(f *testing.F) {
	for _, msg := range samples() {
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		again, err := decode(msg)
		if err == nil {
			require.Equal(t, msg, again)
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

// A node takes any bytes on a control connection and on the link, before and after a hello, without
// panicking, looping or growing.
func FuzzNode(f *testing.F) {
	for _, msg := range samples() {
		f.Add(msg, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, msg, frame []byte) {
		w := newWorld(t, 1)
		a := w.add("a", nil)
		w.add("b", nil)
		w.connect()
		w.run(10 * time.Millisecond)
		id, err := a.Open(w.now, "b", asyncOptions("s"))
		require.NoError(t, err)
		w.settle()
		for c := range w.conns {
			if c.node == a.index {
				a.Control(w.now, c.id, bytes.Clone(msg))
				a.Control(w.now, c.id, bytes.Clone(msg))
			}
		}
		a.ControlUp(w.now, 1000, "")
		a.Control(w.now, 1000, msg)
		a.Control(w.now, 1000, msg)
		a.Input(w.now, 0, microproto.NewBuffer(frame, nil).Frame(2, 0, len(frame)))
		w.run(20 * time.Second)
		require.LessOrEqual(t, len(a.peers), 3)
		require.LessOrEqual(t, len(a.associations.Conns), 2)
		a.Close(w.now, id)
	})
}

// A session takes any sequence of well-formed messages about changes and paths, while its user changes, sends
// and receives and its rail goes down and up, without panicking or looping.
func FuzzAdapt(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 0, 0, 1, 9, 3, 4, 5, 6})
	f.Add([]byte{9, 0, 1, 1, 2, 2, 1, 3, 200, 7, 7, 8, 9, 10, 1})
	f.Add([]byte{128, 6, 1, 3, 3, 2, 1, 6, 2, 1, 8, 0, 7, 3, 1, 1, 4, 0, 2, 1})
	f.Add([]byte{129, 5, 0, 3, 2, 8, 1, 6, 1, 3, 7, 2, 4, 4, 4, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		d := quietTwoNodes(7, time.Millisecond)
		d.deadly, d.closing = true, true
		if len(script) > 0 && script[0]&0x80 != 0 {
			d.cables = &[2]cable{}
		}
		d.start(microproto.ModeSynchronous, nil)
		e, other := d.ends[0], d.ends[1]
		next := func() (b byte) {
			if len(script) > 0 {
				b, script = script[0], script[1:]
			}
			return b
		}
		sequence := e.n.peers[0].Received
		for len(script) > 0 {
			s := e.n.session(e.id)
			var w []byte
			switch verb := next(); verb % 9 {
			case 0, 1:
				sequence++
				a := control.Proposal{
					Ends: control.Ends{To: uint32(s.id), From: s.theirs.Session}, Epoch: uint8(s.info.Changes) + 1 + next()/128,
					Cause: control.Cause(1 + next()%5),
					Mode:  microproto.Mode(1 + next()%2), Network: s.conditions.Network, Round: s.channel.Round,
					Distance: Distance(next() % 3), Lossy: next()%2 == 1,
					Protocols: s.composition.Protocols, FrameBytes: uint32(next()) * 8, Sent: uint64(next()),
				}
				if c := s.renegotiation.next; c != nil && verb%9 == 1 {
					a.Protocols, a.Fingerprint = c.composition.Protocols, c.composite.Fingerprint()
				}
				if a.Cause == control.CauseRail {
					a.Network, a.Round = Network(1+next()%2), uint32(next()%3)
				}
				w = control.Encode(control.KindPropose, sequence, 0, &a)
			case 2:
				sequence++
				w = control.Encode(control.KindSwitched, sequence, 0, &control.Switched{
					Ends:  control.Ends{To: uint32(s.id), From: s.theirs.Session},
					Epoch: uint8(s.info.Changes) + 1, Sent: uint64(next()),
					Accepted: uint64(next() % 8),
					Stored:   uint64(next()) * 64, Credit: uint64(next()) * 256,
				})
			case 3:
				_, _ = e.n.Adapt(d.clock.Now(), e.id, microproto.Mode(1+next()%2))
			case 4:
				to := s.conditions
				to.Distance = Distance(next() % 3)
				_ = e.n.proposeConditions(d.clock.Now(), s, to)
			case 5:
				_, _ = e.n.Send(d.clock.Now(), e.id, 1, Label(next()), make([]byte, 64))
				_, _ = e.n.Receive(d.clock.Now(), e.id, &Slot{Tag: 1, Data: make([]byte, 64)})
			}
			switch {
			case len(w) > 0:
			case d.cables == nil:
			case len(script)%3 == 0:
				sequence++
				round := e.n.peers[0].paths.List[0].Round
				m := control.PathState{Network: InfiniBand, Round: round + uint32(next()%2), Stage: control.Stage(1 + next()%3)}
				if m.Stage == control.Offered {
					m.Offer = []byte{1, next()}
				}
				w = control.Encode(control.KindPath, sequence, 0, &m)
			case len(script)%3 == 1:
				sequence++
				w = control.Encode(control.KindDrained, sequence, 0, &control.Drained{
					Ends:  control.Ends{To: uint32(s.id), From: s.theirs.Session},
					Epoch: uint8(s.info.Changes) + 1})
			default:
				e.n.RailEvent(d.clock.Now(), 1, microproto.LinkEvent{Up: next()%2 == 0, Peer: microproto.LinkAddr(next() % 3),
					Err: rail.ErrNoReason})
			}
			if len(w) > 0 {
				e.n.Control(d.clock.Now(), ConnID(2*d.wire+e.i), w)
			}
			if s.state != SessionOpen {
				break
			}
		}
		d.dead = other
		e.settle()
		e.n.Close(d.clock.Now(), e.id)
		e.n.Advance(d.clock.Now().Add(time.Hour))
		e.n.Close(d.clock.Now(), e.id)
	})
}
