package p2psap

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// samples are one message of each kind.
func samples() [][]byte {
	make := func(k controlKind, sequence uint64, body interface{ append(*writer) }) []byte {
		var w writer
		envelope{kind: k, sequence: sequence, ack: 3}.append(&w)
		if body != nil {
			body.append(&w)
		}
		return w
	}
	return [][]byte{
		make(kindRefusal, 0, &refusal{"the name is in use"}),
		make(kindHello, 0, &hello{Run: "r", Version: "v", Catalog: 1, Name: "b", Incarnation: 9, Host: "h", Process: 2, Cluster: "c", Addresses: prefixes("10.0.0.1/24", "fd00::1/64"), Network: Memory, Offer: []byte("b"), Rails: []Network{InfiniBand, Ethernet}}),
		make(kindHeartbeat, 0, nil),
		make(kindOpen, 1, &open{Session: 7, Name: "s", Mode: microproto.ModeSynchronous, Protocols: []string{"A", "B"}, Fingerprint: 5, Port: 6, FrameBytes: 1400, Network: InfiniBand, Round: 2, BaseBytes: 1472, ReceiveBytes: 65536, Slots: []SlotSpec{{1, 64}}, Protect: ProtectNever}),
		make(kindOpen, 1, &open{Session: 7, Name: "s", Mode: microproto.ModeAsynchronous, Network: Ethernet, Protect: ProtectAuto, Random: bytes.Repeat([]byte{7}, randomBytes)}),
		make(kindOpenAck, 2, &openAck{To: 1, From: 2, FrameBytes: 1400, Network: Ethernet, Fingerprint: 5}),
		make(kindReject, 3, &reject{To: 1, From: 2, Reason: "why"}),
		make(kindClose, 4, &closing{To: 1, From: 2, Accepted: 3}),
		make(kindCloseAck, 5, &closing{To: 1, From: 2}),
		make(kindGoodbye, 6, nil),
		make(kindAdapt, 7, &adapt{To: 1, From: 2, Epoch: 3, Cause: causeContext, Mode: microproto.ModeSynchronous, Network: InfiniBand, Round: 1, Distance: Far, Lossy: true, Protocols: []string{"A", "B"}, Fingerprint: 4, FrameBytes: 1400, Sent: 5}),
		make(kindAdapt, 8, &adapt{To: 1, From: 2, Epoch: 255, Cause: causeAccept, Mode: microproto.ModeAsynchronous, Network: Ethernet, Reason: "why not"}),
		make(kindAdapted, 9, &adapted{To: 1, From: 2, Epoch: 3, Sent: 4, Accepted: 5, Stored: 6, Credit: 7}),
		make(kindRail, 10, &standing{Network: InfiniBand, Round: 3, State: railOffered, Offer: []byte("here")}),
		make(kindRail, 11, &standing{Network: InfiniBand, Round: 3, State: railReady}),
		make(kindRail, 12, &standing{Network: InfiniBand, Round: 3, State: railDown, Reason: "why"}),
		make(kindDrained, 13, &drained{To: 1, From: 2, Epoch: 3}),
		make(kindPing, 0, &echo{7}),
		make(kindPong, 0, &echo{7}),
		make(kindMeasured, 7, &measured{123456}),
	}
}

// decode parses a message and encodes it again.
func decode(msg []byte) ([]byte, error) {
	e, r, err := parseEnvelope(msg)
	if err != nil || r == nil {
		return nil, ErrMalformed
	}
	var w writer
	e.append(&w)
	var body interface{ append(*writer) }
	switch e.kind {
	case kindHello:
		h, herr := parseHello(r)
		body, err = &h, herr
	case kindOpen:
		o, oerr := parseOpen(r)
		body, err = &o, oerr
	case kindOpenAck:
		a, aerr := parseOpenAck(r)
		body, err = &a, aerr
	case kindReject:
		j, jerr := parseReject(r)
		body, err = &j, jerr
	case kindClose, kindCloseAck:
		c, cerr := parseClosing(r, e.kind)
		body, err = &c, cerr
	case kindRefusal:
		b, berr := parseRefusal(r)
		body, err = &b, berr
	case kindPing, kindPong:
		x, xerr := parseEcho(r, e.kind)
		body, err = &x, xerr
	case kindMeasured:
		d, derr := parseMeasured(r)
		body, err = &d, derr
	case kindAdapt:
		a, aerr := parseAdapt(r)
		body, err = &a, aerr
	case kindAdapted:
		a, aerr := parseAdapted(r)
		body, err = &a, aerr
	case kindRail:
		m, merr := parseStanding(r)
		body, err = &m, merr
	case kindDrained:
		d, derr := parseDrained(r)
		body, err = &d, derr
	default:
		return w, r.end(e.kind)
	}
	if err == nil {
		body.append(&w)
	}
	return w, err
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

// Whatever is accepted has one encoding: it comes out as it went in.
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

// A node takes any bytes on a control connection and on the link, before and
// after a hello, without panic, without end and without growing.
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
		require.LessOrEqual(t, len(a.conns), 2)
		a.Close(w.now, id)
	})
}

// A session takes any sequence of adapt, adapted, drained and rail messages that are well
// formed, while its user changes, sends and receives and its rail falls and rises, without
// panic and without end.
func FuzzAdapt(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 0, 0, 1, 9, 3, 4, 5, 6})
	f.Add([]byte{9, 0, 1, 1, 2, 2, 1, 3, 200, 7, 7, 8, 9, 10, 1})
	f.Add([]byte{128, 6, 1, 3, 3, 2, 1, 6, 2, 1, 8, 0, 7, 3, 1, 1, 4, 0, 2, 1})
	f.Add([]byte{129, 5, 0, 3, 2, 8, 1, 6, 1, 3, 7, 2, 4, 4, 4, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		d := quietDuel(7, time.Millisecond)
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
		sequence := e.n.peers[0].received
		for len(script) > 0 {
			s := e.n.session(e.id)
			w := writer{}
			switch verb := next(); verb % 9 {
			case 0, 1:
				sequence++
				envelope{kind: kindAdapt, sequence: sequence}.append(&w)
				a := adapt{
					To: s.id, From: s.theirs.Session, Epoch: uint8(s.info.Changes) + 1 + next()/128, Cause: cause(1 + next()%4),
					Mode: microproto.Mode(1 + next()%2), Network: s.conditions.Network, Round: s.channel.round, Distance: Distance(next() % 3), Lossy: next()%2 == 1,
					Protocols: s.composition.Protocols, FrameBytes: uint32(next()) * 8, Sent: uint64(next()),
				}
				if c := s.change.next; c != nil && verb%9 == 1 {
					a.Protocols, a.Fingerprint = c.composition.Protocols, c.composite.Fingerprint()
				}
				if a.Cause == causeRail {
					a.Network, a.Round = Network(1+next()%2), uint32(next()%3)
				}
				a.append(&w)
			case 2:
				sequence++
				envelope{kind: kindAdapted, sequence: sequence}.append(&w)
				(&adapted{
					To: s.id, From: s.theirs.Session, Epoch: uint8(s.info.Changes) + 1, Sent: uint64(next()), Accepted: uint64(next() % 8),
					Stored: uint64(next()) * 64, Credit: uint64(next()) * 256,
				}).append(&w)
			case 3:
				_, _ = e.n.Adapt(d.clock.Now(), e.id, microproto.Mode(1+next()%2))
			case 4:
				to := s.conditions
				to.Distance = Distance(next() % 3)
				_ = e.n.wish(d.clock.Now(), s, to)
			case 5:
				_, _ = e.n.Send(d.clock.Now(), e.id, 1, Label(next()), make([]byte, 64))
				_, _ = e.n.Receive(d.clock.Now(), e.id, &Slot{Tag: 1, Data: make([]byte, 64)})
			}
			switch {
			case len(w) > 0:
			case d.cables == nil:
			case len(script)%3 == 0:
				sequence++
				envelope{kind: kindRail, sequence: sequence}.append(&w)
				m := standing{Network: InfiniBand, Round: e.n.peers[0].ways[0].round + uint32(next()%2), State: railState(1 + next()%3)}
				if m.State == railOffered {
					m.Offer = []byte{1, next()}
				}
				m.append(&w)
			case len(script)%3 == 1:
				sequence++
				envelope{kind: kindDrained, sequence: sequence}.append(&w)
				(&drained{To: s.id, From: s.theirs.Session, Epoch: uint8(s.info.Changes) + 1}).append(&w)
			default:
				e.n.RailEvent(d.clock.Now(), 1, microproto.LinkEvent{Up: next()%2 == 0, Peer: microproto.LinkAddr(next() % 3), Err: errUnknown})
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
