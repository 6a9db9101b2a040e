package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// script is a peer that returns given operations.
type script struct {
	links  []iterate.Link
	ops    []iterate.Op
	packed []uint64 // labels
	faces  []string // received
	agreed []string
	pieces [][]byte // of the newest face
	halo   func()   // called by Halo, if not nil
}

func (s *script) Links() []iterate.Link { return s.links }

func (s *script) Next(time.Duration) iterate.Op {
	if len(s.ops) == 0 {
		return iterate.Op{Kind: iterate.OpWait}
	}
	op := s.ops[0]
	s.ops = s.ops[1:]
	return op
}

func (s *script) Pack(op iterate.Op, dst []byte) {
	s.packed = append(s.packed, op.Label)
	dst[0] = byte(op.Label)
}

func (s *script) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	if s.halo != nil {
		s.halo()
	}
	if bytes.Equal(bytes.Join(data, nil), []byte("ba")) {
		return errors.New("not a message of this run")
	}
	s.faces = append(s.faces, fmt.Sprint(q, tag, label, bytes.Join(data, nil)))
	s.pieces = data
	return nil
}

func (s *script) Agree(_ time.Duration, q iterate.Rank, msg []byte) error {
	if string(msg) == "bad" {
		return errors.New("not a message of this run")
	}
	s.agreed = append(s.agreed, fmt.Sprintf("%d %s", q, msg))
	return nil
}

// line is a session that a test controls.
type line struct {
	sent     []string
	busy     bool
	accepted p2psap.Transfer
	queue    []message
	closed   error
	lent     [][]byte // messages, in the order of View
	modes    []microproto.Mode
	adapted  bool
}

type message struct {
	tag        p2psap.Tag
	label      uint64
	data       string
	incomplete bool
}

func (l *line) Reserve(p2psap.Tag, int) []byte { return nil }

func (l *line) Send(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	switch {
	case l.closed != nil:
		return 0, l.closed
	case l.busy:
		return 0, p2psap.ErrBusy
	}
	l.sent = append(l.sent, fmt.Sprint(tag, label, data))
	return p2psap.Transfer(len(l.sent)), nil
}

func (l *line) Receive(slot *p2psap.Slot, _ bool) (p2psap.Arrival, error) {
	for i, m := range l.queue {
		if m.tag == slot.Tag {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return p2psap.Arrival{Label: m.label, Length: copy(slot.Data, m.data), Fresh: true,
				Complete: !m.incomplete}, nil
		}
	}
	return p2psap.Arrival{}, l.closed
}

func (l *line) View(tag p2psap.Tag, v *p2psap.View, waits bool) (p2psap.Arrival, error) {
	slot := p2psap.Slot{Tag: tag, Data: make([]byte, 2)}
	a, err := l.Receive(&slot, waits)
	if a.Fresh && a.Complete {
		l.lent = append(l.lent, slot.Data[:a.Length])
		v.Swap(slot.Data[:a.Length])
	}
	return a, err
}

func (l *line) Accepted(t p2psap.Transfer) (bool, error) { return l.accepted >= t, nil }
func (l *line) Adapted() (bool, error)                   { return l.adapted, nil }

func (l *line) Adapt(m microproto.Mode) error {
	l.modes = append(l.modes, m)
	return l.closed
}

// rig is an exchange between rank 3 and its neighbours 1 and 4, with the sessions of a test.
type rig struct {
	*Exchange
	t            *testing.T
	peer         *script
	halos, agree []*line
}

func newRig(t *testing.T, asynchronous bool, change func(c *Config)) *rig {
	r := &rig{t: t, peer: &script{}}
	for _, q := range []iterate.Rank{1, 4} {
		r.peer.links = append(r.peer.links, iterate.Link{
			Rank: q, Slots: []int{2, 2}, Sent: []int{2, 2}, Agreement: 8, Asynchronous: asynchronous,
		})
	}
	c := Config{Rank: 3, Peer: r.peer, Name: func(q iterate.Rank) string { return fmt.Sprint("peer", q) }}
	if change != nil {
		change(&c)
	}
	r.Exchange = New(c)
	for _, n := range r.Neighbours() {
		h, a := &line{}, &line{}
		n.Halo, n.Agree = h, a
		r.halos, r.agree = append(r.halos, h), append(r.agree, a)
	}
	return r
}

// until calls Next until an action that is neither Continue nor Send.
func (r *rig) until(want Kind) Action {
	r.t.Helper()
	for {
		a, err := r.Next(0)
		require.NoError(r.t, err)
		if a.Kind != Continue && a.Kind != Send {
			require.Equal(r.t, want, a.Kind)
			return a
		}
	}
}

func (r *rig) poll() (news bool) {
	r.t.Helper()
	r.TouchAll()
	news, err := r.Poll(0)
	require.NoError(r.t, err)
	return news
}

func send(to iterate.Rank, label uint64) iterate.Op {
	return iterate.Op{Kind: iterate.OpSend, To: to, Tag: uint32(label % 2), Label: label, Bytes: 2}
}

func TestSessionsHaveTheSameNameAtBothEnds(t *testing.T) {
	r := newRig(t, true, nil)
	n := r.Neighbours()
	require.Equal(t, "halo/1-3", n[0].HaloOptions().Name)
	require.Equal(t, "halo/3-4", n[1].HaloOptions().Name)
	require.Equal(t, "agree/3-4", n[1].AgreeOptions().Name)
	require.Equal(t, microproto.ModeAsynchronous, n[1].HaloOptions().Mode)
	require.Equal(t, microproto.ModeSynchronous, n[1].AgreeOptions().Mode)
	require.Equal(t, []p2psap.SlotSpec{{Tag: 0, Length: 2}, {Tag: 1, Length: 2}}, n[0].HaloOptions().Slots)
}

// A synchronous face waits for a buffer whose face was accepted, and then for room. Meanwhile
// messages are received.
func TestSynchronousFaceWaits(t *testing.T) {
	r := newRig(t, false, nil)
	r.peer.ops = []iterate.Op{send(1, 1), send(1, 2), send(1, 3)}
	r.until(Blocked)
	require.Equal(t, []uint64{1, 2}, r.peer.packed, "two buffers")
	r.halos[1].queue = []message{{tag: 1, label: 7, data: "ab"}}
	r.TouchAll()
	r.until(Blocked)
	require.Equal(t, []string{"4 1 7 [97 98]"}, r.peer.faces)
	r.halos[0].accepted, r.halos[0].busy = 1, true
	r.until(Blocked)
	require.Equal(t, []uint64{1, 2, 3}, r.peer.packed)
	require.Len(t, r.halos[0].sent, 2)
	r.halos[0].busy = false
	r.until(Wait)
	require.Equal(t, []string{"1 1 [1 0]", "0 2 [2 0]", "1 3 [3 0]"}, r.halos[0].sent)
}

func TestAsynchronousFaceIsDropped(t *testing.T) {
	r := newRig(t, true, nil)
	r.halos[0].busy = true
	r.peer.ops = []iterate.Op{send(1, 1), send(1, 2), send(1, 3), send(4, 1)}
	r.until(Wait)
	require.Empty(t, r.halos[0].sent)
	require.Len(t, r.halos[1].sent, 1)
}

// An agreement message is never dropped.
func TestAgreementWaitsForRoom(t *testing.T) {
	r := newRig(t, true, nil)
	r.agree[0].busy = true
	r.peer.ops = []iterate.Op{{Kind: iterate.OpAgree, To: 1, Label: 5, Message: []byte{9}}}
	a, err := r.Next(0)
	require.NoError(t, err)
	require.Equal(t, Action{Kind: Send, Bytes: 1}, a)
	r.until(Blocked)
	r.agree[0].busy = false
	r.until(Wait)
	require.Equal(t, []string{"0 5 [9]"}, r.agree[0].sent)
}

// One message of each tag is received at a time, and all agreement messages. A session with more messages is polled
// again.
func TestPoll(t *testing.T) {
	r := newRig(t, false, nil)
	news, err := r.Poll(0)
	require.NoError(t, err)
	require.False(t, news)
	r.halos[0].queue = []message{{tag: 0, label: 2, data: "c"}, {tag: 0, label: 4, data: "d"}, {tag: 1, label: 3,
		incomplete: true}}
	r.agree[1].queue = []message{{data: "x"}, {data: "y"}}
	news, err = r.Poll(0)
	require.NoError(t, err)
	require.False(t, news, "no session was touched")
	require.True(t, r.poll())
	require.Equal(t, []string{"1 0 2 [99]"}, r.peer.faces)
	require.Equal(t, []string{"4 x", "4 y"}, r.peer.agreed)
	require.EqualValues(t, 2, r.Neighbours()[0].Newest())
	news, err = r.Poll(0)
	require.NoError(t, err)
	require.True(t, news, "there was another one")
	require.Len(t, r.peer.faces, 2)
	r.agree[0].queue = []message{{data: "bad"}}
	r.TouchAll()
	_, err = r.Poll(0)
	var wrong *NeighbourError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, iterate.Rank(1), wrong.Rank)
	require.Equal(t, "peer1", wrong.Peer)
}

// A wait ends when messages have been received, by the exchange itself or by Poll.
func TestWait(t *testing.T) {
	r := newRig(t, false, nil)
	r.peer.ops = []iterate.Op{{Kind: iterate.OpWait, Until: 5}, {Kind: iterate.OpWait, Until: 6},
		{Kind: iterate.OpDone}}
	require.EqualValues(t, 5, r.until(Wait).Until)
	r.agree[0].queue = []message{{data: "x"}}
	require.True(t, r.poll())
	a, err := r.Next(0)
	require.NoError(t, err)
	require.Equal(t, Action{Kind: Wait, Until: 6}, a, "the peer is asked at once")
	r.until(Done)
}

// Messages that a neighbour sent before it closed its sessions are received. Nothing more is sent to it, and the run
// fails without a verdict.
func TestNeighbourLeaves(t *testing.T) {
	r := newRig(t, false, nil)
	next, err := r.Age(time.Hour, time.Second)
	require.NoError(t, err)
	require.Equal(t, Never, next)
	r.halos[0].queue = []message{{tag: 1, label: 3, data: "z"}}
	r.halos[0].closed, r.agree[0].closed = p2psap.ErrPeerClosed, p2psap.ErrPeerClosed
	require.True(t, r.poll())
	require.Len(t, r.peer.faces, 1)
	r.peer.ops = []iterate.Op{send(1, 4), send(1, 5), send(1, 6), {Kind: iterate.OpAgree, To: 1, Message: []byte{1}}}
	r.until(Wait)
	next, err = r.Age(time.Hour, time.Second)
	require.NoError(t, err)
	require.Equal(t, time.Hour+time.Second, next)
	_, err = r.Age(next, time.Second)
	require.ErrorIs(t, err, p2psap.ErrPeerClosed)
	require.ErrorContains(t, err, "left too early by rank 1: no verdict 1s after it had left")
}

// With Survive, a neighbour that has closed its sessions without a verdict is reported once, and the run goes on.
func TestNeighbourThatLeavesIsSurvived(t *testing.T) {
	r := newRig(t, false, nil)
	var lost []iterate.Rank
	r.config.Survive = true
	r.config.Lost = func(q iterate.Rank, why error) {
		require.ErrorIs(t, why, p2psap.ErrPeerClosed)
		lost = append(lost, q)
	}
	r.halos[0].closed, r.agree[0].closed = p2psap.ErrPeerClosed, p2psap.ErrPeerClosed
	r.poll()
	next, err := r.Age(time.Hour, time.Second)
	require.NoError(t, err)
	require.Equal(t, time.Hour+time.Second, next)
	require.Empty(t, lost, "it may have had a verdict")
	for range 2 {
		next, err = r.Age(time.Hour+time.Second, time.Second)
		require.NoError(t, err)
		require.Equal(t, Never, next)
		require.Equal(t, []iterate.Rank{1}, lost)
	}
	r.peer.ops = []iterate.Op{send(1, 4), {Kind: iterate.OpAgree, To: 1, Message: []byte{1}}}
	r.until(Wait)
}

// With Survive, a neighbour whose messages the peer refuses is reported once, and no more of them are read.
func TestNeighbourWithBadMessagesIsSurvived(t *testing.T) {
	for name, arrives := range map[string]func(r *rig){
		"face":      func(r *rig) { r.halos[0].queue = []message{{data: "ba"}, {tag: 1, data: "ok"}} },
		"agreement": func(r *rig) { r.agree[0].queue = []message{{data: "bad"}, {data: "more"}} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, true, nil)
			var lost []iterate.Rank
			r.config.Survive = true
			r.config.Lost = func(q iterate.Rank, why error) {
				require.ErrorContains(t, why, "cannot go on with rank 1: its message is refused: not a message of this run")
				lost = append(lost, q)
			}
			arrives(r)
			r.poll()
			r.poll()
			require.Equal(t, []iterate.Rank{1}, lost)
			require.Empty(t, r.peer.agreed)
			require.Empty(t, r.peer.faces)
			r.peer.ops = []iterate.Op{send(1, 1), send(4, 1)}
			r.until(Wait)
			require.Empty(t, r.halos[0].sent)
			require.Len(t, r.halos[1].sent, 1)
		})
	}
}

func TestLostNeighbour(t *testing.T) {
	r := newRig(t, false, nil)
	r.halos[1].closed = &p2psap.PeerLostError{Peer: "peer4", Silent: time.Second}
	r.peer.ops = []iterate.Op{send(4, 1)}
	_, err := r.Next(0)
	require.NoError(t, err)
	_, err = r.Next(0)
	require.ErrorContains(t, err, "lost rank 4")
}

// The newest face of each neighbour, which may have been lost, is sent again.
func TestRepeat(t *testing.T) {
	r := newRig(t, true, nil)
	r.peer.ops = []iterate.Op{send(1, 1), send(1, 2)}
	r.until(Wait)
	next, err := r.Repeat(4, 5)
	require.NoError(t, err)
	require.EqualValues(t, 5, next)
	next, err = r.Repeat(6, 5)
	require.NoError(t, err)
	require.EqualValues(t, 11, next)
	require.Equal(t, []string{"1 1 [1 0]", "0 2 [2 0]", "0 2 [2 0]"}, r.halos[0].sent)
	require.Empty(t, r.halos[1].sent)
}

// With Config.Late faces are packed during the sweep and sent at its end.
func TestLate(t *testing.T) {
	r := newRig(t, false, func(c *Config) { c.Late = func() int { return 10 } })
	r.peer.ops = []iterate.Op{
		{Kind: iterate.OpRelax, Points: 4}, send(1, 1), {Kind: iterate.OpRelax, Points: 4}, send(4, 1),
		{Kind: iterate.OpRelax,
			Points: 2},
	}
	for range 3 {
		require.Empty(t, r.halos[0].sent)
		r.until(Relax)
	}
	require.Equal(t, []uint64{1, 1}, r.peer.packed)
	r.until(Wait)
	require.Len(t, r.halos[0].sent, 1)
	require.Len(t, r.halos[1].sent, 1)
}

// A change of mode ends when both ends of all sessions have changed, and is counted once.
func TestAdapt(t *testing.T) {
	r := newRig(t, true, nil)
	r.peer.ops = []iterate.Op{send(1, 1), send(1, 2), {Kind: iterate.OpAdapt}, send(1, 3), send(1, 4), send(1, 5)}
	r.until(Blocked)
	require.True(t, r.Adapting())
	r.halos[1].adapted = true
	r.until(Blocked)
	r.halos[0].adapted = true
	_, err := r.Next(7)
	require.NoError(t, err)
	changes, took := r.Changes()
	require.Equal(t, 1, changes)
	require.EqualValues(t, 7, took)
	for _, h := range r.halos {
		require.Equal(t, []microproto.Mode{microproto.ModeSynchronous}, h.modes)
	}
	r.until(Blocked)
	require.Len(t, r.halos[0].sent, 4, "faces wait until those sent since the change are accepted")
}

// A peer gets the pieces of a face where they arrived, and may read the face before it until Halo has returned.
func TestPieces(t *testing.T) {
	r := newRig(t, false, nil)
	first := message{tag: 1, label: 1, data: "q"}
	r.halos[0].queue = []message{first}
	r.poll()
	require.Same(t, &r.halos[0].lent[0][0], &r.peer.pieces[0][0])
	before := r.peer.pieces
	r.peer.halo = func() { require.Equal(t, "q", string(before[0]), "the old face during Halo of the new one") }
	r.halos[0].queue = []message{{tag: 1, label: 2, data: "r"}}
	r.poll()
	require.Same(t, &r.halos[0].lent[1][0], &r.peer.pieces[0][0])
}

// lender counts the bytes that are lent.
type lender map[int]int

func (l lender) Take(buffer, n int) []byte { l[buffer] += n; return make([]byte, n) }
func (l lender) Give(buffer int, b []byte) { l[buffer] -= len(b) }

// Lent memory is returned once the session does not need it.
func TestMemory(t *testing.T) {
	for _, asynchronous := range []bool{false, true} {
		lent := lender{}
		r := newRig(t, asynchronous, func(c *Config) { c.Memory = lent })
		r.peer.ops = []iterate.Op{send(4, 1), send(4, 2)}
		r.until(Wait)
		if !asynchronous {
			require.Equal(t, lender{2: 2, 3: 2}, lent)
			r.halos[1].accepted = 2
			r.peer.ops = []iterate.Op{send(4, 3)}
			r.until(Wait)
			require.Equal(t, lender{2: 0, 3: 2}, lent)
			continue
		}
		require.Equal(t, lender{2: 0, 3: 0}, lent)
	}
}

// A peer that fails because of a message of a neighbour waits without that neighbour, which counts as lost.
func TestPeerThatRefusesAMessageWaits(t *testing.T) {
	fault := errors.New("too short")
	for _, survives := range []bool{false, true} {
		r := newRig(t, true, nil)
		var lost []iterate.Rank
		r.config.Survive = survives
		r.config.Lost = func(q iterate.Rank, why error) {
			require.ErrorIs(t, why, fault)
			require.ErrorIs(t, why, ErrRefused)
			lost = append(lost, q)
		}
		fail := iterate.Op{Kind: iterate.OpFail, Err: &iterate.Refusal{From: 1, Err: fault}}
		r.peer.ops = []iterate.Op{fail, fail}
		_, err := r.Next(0)
		if !survives {
			require.ErrorIs(t, err, fault)
			continue
		}
		require.NoError(t, err)
		r.until(Wait)
		require.Equal(t, []iterate.Rank{1}, lost)
	}
}
