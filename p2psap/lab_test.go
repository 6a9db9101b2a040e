package p2psap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// lab is a small instance of which every interleaving is tried: two nodes, the calls of their users, the
// messages in flight. Time passes only when nothing else can happen.
type lab struct {
	now     microproto.Instant
	nodes   [2]*Node
	ids     [2]SessionID
	control [2][][]byte // by sender, in order
	frames  [2][]microproto.Frame
	cables  *[2]cable // the ends of a rail; nil: there is none
	conn    ConnID
	threads [2][]labThread
	breaks  int // that may still happen
	drops   int // of data frames
	sent    [2]uint64
	got     [2]uint64
	over    [2][]error
	done    []string
}

// labThread is a user's goroutine: its calls in their order.
type labThread struct {
	moves []string
	next  int
	wait  uint64 // number of the Adapt that it waits for
	full  bool   // a Send found no room
}

type labLink struct {
	i        int
	reliable bool
}

func (l labLink) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}
func (l labLink) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: 256, Reliable: l.reliable, Ordered: l.reliable}
}
func (l labLink) Offer(string) ([]byte, error) { return []byte{byte(l.i)}, nil }
func (l labLink) Accept(b []byte) (microproto.LinkAddr, error) {
	return microproto.LinkAddr(b[0] + 1), nil
}

// instance describes what is explored.
type instance struct {
	name          string
	threads       [2][]string // each thread's moves, separated by spaces
	breaks, drops int
	big           bool
	long          bool // skipped with -short
	rail          bool // there is a second, reliable link, which can go down
	reliable      bool // the link is, and the columns are those for InfiniBand
}

func newLab(in *instance) (*lab, error) {
	l := &lab{now: 1}
	network := Ethernet
	if in.reliable {
		network = Memory
	}
	rails := func(i int) []Rail { return []Rail{{Network: network, Link: labLink{i, in.reliable}}} }
	if in.rail {
		l.cables = &[2]cable{}
		base := rails
		rails = func(i int) []Rail { return append(base(i), Rail{Network: InfiniBand, Link: newCable(&l.cables[i], i)}) }
	}
	for i := range l.nodes {
		var err error
		l.nodes[i], err = NewNode(NodeConfig{
			Name: string(rune('a' + i)), Run: "run", Version: "v", Catalog: ctp.Catalog(), Policy: TablePolicy{},
			Rails: rails(i),
			Host:  string(rune('a' + i)), Process: 1, Seed: uint64(i + 1), PeerTimeout: time.Hour, Heartbeat: 20 * time.Minute,
			Limits: Limits{Composite: microproto.Limits{Messages: 64}},
		})
		if err != nil {
			return nil, err
		}
	}
	for i, n := range l.nodes {
		if err := n.Connect(l.now, string(rune('b'-i)), "x"); err != nil {
			return nil, err
		}
	}
	l.connect()
	l.calm()
	for i, n := range l.nodes {
		var err error
		l.ids[i], err = n.Open(l.now, string(rune('b'-i)), OpenOptions{
			Name: "s", Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, 8}}, ReceiveBytes: 3 * 72,
		})
		if err != nil {
			return nil, err
		}
	}
	l.calm()
	l.breaks, l.drops = in.breaks, in.drops
	for i := range l.threads {
		for _, moves := range in.threads[i] {
			l.threads[i] = append(l.threads[i], labThread{moves: strings.Fields(moves)})
		}
	}
	l.settle()
	return l, nil
}

// connect opens the control connection at both ends at once.
func (l *lab) connect() {
	l.conn++
	l.nodes[0].ControlUp(l.now, l.conn, "")
	l.nodes[1].ControlUp(l.now, l.conn, "a")
	l.settle()
}

// calm delivers until nothing is in flight.
func (l *lab) calm() {
	for l.settle(); len(l.control[0])+len(l.control[1])+len(l.frames[0])+len(l.frames[1]) > 0; l.settle() {
		for i := range 2 {
			if len(l.control[i]) > 0 {
				l.deliverControl(i)
			} else if len(l.frames[i]) > 0 {
				l.deliverFrame(i)
			}
		}
	}
}

func (l *lab) settle() {
	for i, n := range l.nodes {
		for _, o := range n.Drain(nil) {
			if o.Kind == OutControl && o.Conn == l.conn {
				l.control[i] = append(l.control[i], o.Data)
			}
		}
		frames := n.Frames(0)
		for _, f := range frames {
			f.Peer = microproto.LinkAddr(i + 1)
			l.frames[i] = append(l.frames[i], f)
		}
		n.Sent(0, len(frames))
		if l.cables != nil {
			frames = n.Frames(1)
			for _, f := range frames {
				l.cables[i].send(f)
			}
			n.Sent(1, len(frames))
		}
	}
}

func (l *lab) deliverControl(from int) {
	msg := l.control[from][0]
	l.control[from] = l.control[from][1:]
	l.nodes[1-from].Control(l.now, l.conn, msg)
}

func (l *lab) deliverFrame(from int) {
	f := l.frames[from][0]
	l.frames[from] = l.frames[from][1:]
	l.nodes[1-from].Input(l.now, 0, f)
}

// choices returns the events that can happen next.
func (l *lab) choices() (out []string) {
	for i := range 2 {
		if len(l.control[i]) > 0 {
			out = append(out, fmt.Sprintf("control from %c", 'a'+i))
		}
		if len(l.frames[i]) > 0 {
			out = append(out, fmt.Sprintf("frame from %c", 'a'+i))
			if l.drops > 0 {
				out = append(out, fmt.Sprintf("drop of %c", 'a'+i))
			}
		}
		if l.cables != nil && len(l.cables[i].flying) > 0 {
			out = append(out, fmt.Sprintf("cable from %c", 'a'+i))
		}
		for k := range l.threads[i] {
			if l.enabled(i, k) {
				out = append(out, fmt.Sprintf("user %c%d", 'a'+i, k))
			}
		}
	}
	if l.breaks > 0 && len(l.control[0])+len(l.control[1]) > 0 {
		out = append(out, "break")
	}
	return out
}

func (l *lab) enabled(i, k int) bool {
	t := &l.threads[i][k]
	if t.wait != 0 {
		count, err := l.nodes[i].Adapted(l.ids[i])
		if count < t.wait {
			return false
		}
		t.wait = 0
		l.over[i] = append(l.over[i], err)
	}
	return t.next < len(t.moves) && !t.full
}

// do makes one of the choices happen.
func (l *lab) do(choice string) error {
	l.done = append(l.done, choice)
	for k := range l.threads {
		for j := range l.threads[k] {
			l.threads[k][j].full = false
		}
	}
	i := int(choice[len(choice)-1] - 'a')
	switch verb, _, _ := strings.Cut(choice, " "); verb {
	case "control":
		l.deliverControl(i)
	case "frame":
		l.deliverFrame(i)
	case "cable":
		l.deliverCable(i)
	case "drop":
		l.frames[i] = l.frames[i][1:]
		l.drops--
	case "break":
		l.breaks--
		l.control = [2][][]byte{}
		for _, n := range l.nodes {
			n.ControlDown(l.now, l.conn)
		}
		l.connect()
	case "user":
		if err := l.move(int(choice[5]-'a'), int(choice[6]-'0')); err != nil {
			return err
		}
	}
	l.settle()
	return l.check(false)
}

// move makes the next call of a user's thread.
func (l *lab) move(i, k int) error {
	t := &l.threads[i][k]
	n, id, what := l.nodes[i], l.ids[i], t.moves[t.next]
	s := n.session(id)
	t.next++
	if s.state != SessionOpen {
		return nil // the other user has closed it
	}
	var err error
	switch what {
	case "send", "put": // a message if it can be one; put waits for room
		if s.conditions.Mode == microproto.ModeSynchronous {
			data := binary.BigEndian.AppendUint64(nil, l.sent[i]+1)
			if _, err = n.Send(l.now, id, 1, Label(l.sent[i]+1), data); err == nil {
				l.sent[i]++
			}
		} else {
			_, err = n.Send(l.now, id, 1, 1, make([]byte, 8))
		}
		if errors.Is(err, ErrBusy) {
			err = nil
			if what == "put" {
				t.full = true
				t.next--
			}
		}
	case "take":
		l.receive(i)
	case "get": // waits for a message
		if l.receive(i); l.got[i] == 0 {
			t.full = true
			t.next--
		}
	case "sync", "async":
		t.wait, err = n.Adapt(l.now, id, map[string]microproto.Mode{"sync": microproto.ModeSynchronous,
			"async": microproto.ModeAsynchronous}[what])
	case "far", "near", "lossy":
		to := s.conditions
		to.Distance = map[string]Distance{"far": Far, "near": Near}[what]
		to.Lossy = what == "lossy"
		if err = n.proposeConditions(l.now, s, to); errors.Is(err, ErrBusy) {
			err = nil
		}
	case "close":
		n.Close(l.now, id)
	case "wait": // so long that the answer to a monitor comes too late
		l.now = l.now.Add(10 * time.Second)
	case "cut": // the rail goes down at this end, with what is on its way
		l.cables[0].flying, l.cables[1].flying = nil, nil
		n.RailEvent(l.now, 1, microproto.LinkEvent{Err: rail.ErrNoReason})
	case "fall": // it goes down, and what is on its way may still arrive
		n.RailEvent(l.now, 1, microproto.LinkEvent{Err: rail.ErrNoReason})
	case "lose": // the connection with the peer does
		n.RailEvent(l.now, 1, microproto.LinkEvent{Peer: l.cables[i].peer, Err: rail.ErrNoReason})
	case "rise":
		n.RailEvent(l.now, 1, microproto.LinkEvent{Up: true})
	default:
		err = fmt.Errorf("no move %q", what)
	}
	return err
}

func (l *lab) receive(i int) {
	for {
		slot := Slot{Tag: 1, Data: make([]byte, 8)}
		a, err := l.nodes[i].Receive(l.now, l.ids[i], &slot)
		if err != nil || !a.Fresh {
			return
		}
		if v := binary.BigEndian.Uint64(slot.Data); v != 0 {
			if v != l.got[i]+1 || a.Label != v {
				l.got[i] = 1 << 32 // found by check
				return
			}
			l.got[i]++
		}
	}
}

// check returns an invariant that does not hold; in the end everything must have arrived and been agreed on.
func (l *lab) check(end bool) error {
	for i := range 2 {
		if s := l.nodes[i].session(l.ids[i]); end && s != nil && s.state == SessionOpen {
			l.receive(i)
		}
		for k := range l.threads[i] {
			l.enabled(i, k) // looks how a wish has ended
		}
	}
	for i, n := range l.nodes {
		if l.got[i] > l.sent[1-i] {
			return fmt.Errorf("%c has received what was not sent, or out of order", 'a'+i)
		}
		s := n.session(l.ids[i])
		if s == nil || s.state == SessionEnded && !errors.Is(s.err, ErrClosed) {
			return fmt.Errorf("%c: the session has ended: %w", 'a'+i, s.err)
		}
		if state, err := n.Peer(string(rune('b' - i))); state != PeerUp {
			return fmt.Errorf("%c: the peer is %v: %w", 'a'+i, state, err)
		}
		if !end || s.state != SessionOpen {
			continue
		}
		for k := range l.threads[i] {
			if t := &l.threads[i][k]; t.next < len(t.moves) || t.wait != 0 {
				return fmt.Errorf("%c: a user still waits", 'a'+i)
			}
		}
		other := l.nodes[1-i].session(l.ids[1-i])
		if l.cables != nil {
			if err := l.checkRail(i, s, other); err != nil {
				return err
			}
		}
		switch {
		case other.state != SessionOpen:
		case l.got[i] != l.sent[1-i]:
			return fmt.Errorf("%c has received %d of %d messages", 'a'+i, l.got[i], l.sent[1-i])
		case s.renegotiation.Mine.Cause != 0 || s.renegotiation.Theirs.Cause != 0:
			return fmt.Errorf("%c: a change is under way for ever", 'a'+i)
		case uint64(s.acceptedNow()) != s.info.MessagesSent:
			return fmt.Errorf("%c: %d of %d transfers are accepted", 'a'+i, s.acceptedNow(), s.info.MessagesSent)
		case s.channel.number != other.channel.number ||
			fmt.Sprint(s.composition.Protocols) != fmt.Sprint(other.composition.Protocols):
			return fmt.Errorf("the ends have different compositions")
		case len(l.over[i]) != len(l.over[1-i]) || len(l.over[i]) > 0 && (l.over[i][0] == nil) != (l.over[1-i][0] == nil):
			return fmt.Errorf("wishes ended with %v and %v", l.over[0], l.over[1])
		}
	}
	return nil
}

// finish lets time pass without faults until check passes or a bound is reached.
func (l *lab) finish() error {
	var err error
	l.breaks, l.drops = 0, 0
	for range 60 {
		for c := l.choices(); len(c) > 0; c = l.choices() {
			if err := l.do(c[0]); err != nil {
				return err
			}
		}
		if err = l.check(true); err == nil {
			return nil
		}
		if l.settle(); len(l.choices()) > 0 {
			continue // receiving has made room
		}
		d := min(l.nodes[0].Deadline(), l.nodes[1].Deadline())
		if d > l.now.Add(time.Minute) {
			break // only heartbeats are left
		}
		l.now = max(l.now, d)
		for _, n := range l.nodes {
			n.Advance(l.now)
		}
		l.settle()
	}
	return err
}

// hash returns a hash of the state: that of the nodes, of what is in flight, and of the users.
func (l *lab) hash() uint64 {
	h := fnv.New64a()
	w := &digest{sum: h}
	for i, n := range l.nodes {
		p := n.peers[0]
		if l.cables != nil {
			l.cables[i].hash(h, p.paths.List[0], n.session(l.ids[i]))
		}
		fmt.Fprint(h, "|", p.State, p.Sent, p.Received, len(p.Unacked), l.sent[i], l.got[i], len(l.over[i]),
			l.breaks, l.drops)
		for _, t := range l.threads[i] {
			fmt.Fprint(h, t.next, t.wait, t.full)
		}
		for _, m := range l.control[i] {
			_, _ = h.Write(m)
		}
		for _, f := range l.frames[i] {
			_, _ = h.Write(f.Data)
		}
		s := n.session(l.ids[i])
		if c := s.renegotiation.next; c != nil && s.renegotiation.Mine.Cause == control.CauseMonitor {
			fmt.Fprint(h, n.answeredLate(l.now, s))
		}
		fmt.Fprint(h, s.state, s.renegotiation.Mine, s.renegotiation.Theirs, s.renegotiation.Agreed,
			s.renegotiation.Switched, s.renegotiation.answer, s.renegotiation.wanted, s.renegotiation.count,
			s.unacked.Len(), s.unacked.base, s.unacked.submitted, s.handover.Unread, s.arrived, s.accepted, s.info.MessagesSent,
			s.conditions)
		for _, c := range []*channel{s.previous, s.channel} {
			if c == nil {
				continue
			}
			fmt.Fprint(h, c.number, c.held, c.first, c.Round, c.Over)
			for _, name := range c.composition.Protocols {
				w.value(reflect.ValueOf(c.composite.Protocol(name)), 0)
			}
		}
	}
	return h.Sum64()
}
