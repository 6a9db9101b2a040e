package p2psap

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// Two nodes lose each other in an outage, or one the other. Once those have disconnected that noticed it they connect
// again, although both processes are the same, in whatever order they do so; a third node's sessions with them go on.
func TestReadmission(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		a, b, c := w.add("a", nil), w.add("b", nil), w.add("c", nil)
		w.connect()
		w.run(2 * time.Second)
		open := func(x, y *worldNode) (SessionID, SessionID) {
			o := OpenOptions{Name: "halo", Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{Tag: 1, Length: 8}}}
			at, err := x.Open(w.now, y.Name(), o)
			require.NoError(t, err)
			to, err := y.Open(w.now, x.Name(), o)
			require.NoError(t, err)
			w.settle()
			require.True(t, w.until(5*time.Second, func() bool { return x.opened[at] && y.opened[to] }))
			return at, to
		}
		_, was := open(a, b)
		with, _ := open(a, c)
		lose := func(x, y *worldNode) { x.associations.Fail(w.now, x.peer(y.Name()).Peer, errors.New("silent")) }
		lose(a, b)
		both := seed%3 > 0
		if both {
			lose(b, a)
		}
		w.settle()
		state, err := a.Peer("b")
		require.Equal(t, PeerLost, state)
		require.Equal(t, err, a.Connect(w.now, "b", "b"), "it stays lost")
		first, second := a, b
		if both && seed%2 == 1 {
			first, second = b, a
		}
		require.NoError(t, first.Disconnect(w.now, second.Name()))
		require.NoError(t, first.Connect(w.now, second.Name(), second.Name()))
		w.settle()
		w.run(time.Duration(seed/4) * 400 * time.Millisecond)
		if both {
			require.NoError(t, second.Disconnect(w.now, first.Name()))
			require.NoError(t, second.Connect(w.now, first.Name(), first.Name()))
			w.settle()
		}
		require.True(t, w.until(20*time.Second, func() bool {
			at, _ := a.Peer("b")
			to, _ := b.Peer("a")
			_, ended := b.ended[was]
			return at == PeerUp && to == PeerUp && ended
		}), "seed %d", seed)
		open(a, b)
		state2, err := a.State(with)
		require.NoError(t, err)
		require.Equal(t, SessionOpen, state2)
	}
}

// CloseWithin called again shortens the time in which transfers may be accepted.
func TestCloseWithinIsShortened(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.add("a", nil), w.add("b", nil)
	w.connect()
	w.run(time.Second)
	at, err := a.Open(w.now, "b", syncOptions("halo"))
	require.NoError(t, err)
	_, err = b.Open(w.now, "a", syncOptions("halo"))
	require.NoError(t, err)
	require.True(t, w.until(time.Second, func() bool { return a.opened[at] }))
	b.muted = true
	_, err = a.Send(w.now, at, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	a.CloseWithin(w.now, at, time.Hour)
	w.run(time.Second)
	state, _ := a.State(at)
	require.Equal(t, SessionLingering, state)
	a.CloseWithin(w.now, at, 0)
	state, _ = a.State(at)
	require.Equal(t, SessionClosing, state)
}
