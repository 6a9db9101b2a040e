package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// A peer that is silent while its connections are open is lost after PeerTimeout, and its sessions with it;
// other peers' sessions go on.
func TestSilentPeerIsLost(t *testing.T) {
	for name, fate := range map[string]func(*worldNode){
		"silent": func(n *worldNode) { n.muted = true },
		"dead":   func(n *worldNode) { n.dead = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 5)
			a, b, c := w.add("a", nil), w.add("b", nil), w.add("c", nil)
			w.connect()
			w.run(10 * time.Millisecond)
			sb, err := a.Open(w.now, "b", syncOptions("s"))
			require.NoError(t, err)
			_, err = b.Open(w.now, "a", syncOptions("s"))
			require.NoError(t, err)
			sc, err := a.Open(w.now, "c", syncOptions("s"))
			require.NoError(t, err)
			_, err = c.Open(w.now, "a", syncOptions("s"))
			require.NoError(t, err)
			w.run(time.Minute)
			require.Equal(t, SessionOpen, a.state(sb), "quiet sessions live on heartbeats")
			fate(b)
			start := w.now
			require.True(t, w.until(time.Minute, func() bool { return a.state(sb) == SessionEnded }))
			require.InDelta(t, 4, w.now.Sub(start).Seconds(), 0.6)
			_, err = a.State(sb)
			var lost *PeerLostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, "b", lost.Peer)
			require.Equal(t, 4*time.Second, lost.Silent)
			_, err = a.Send(w.now, sb, 2, 1, make([]byte, 8))
			require.ErrorAs(t, err, &lost)
			_, err = a.Open(w.now, "b", syncOptions("t"))
			require.ErrorAs(t, err, &lost)
			w.run(time.Minute)
			require.Equal(t, SessionOpen, a.state(sc))
		})
	}
}

// A broken connection is no loss of the peer: it is made again, and messages that were not acknowledged are
// sent again.
func TestBrokenConnectionIsMadeAgain(t *testing.T) {
	w, a, b, sa, sb := pair(t, syncOptions("s"))
	for range 20 {
		for c := range w.conns {
			if c.node == a.index {
				w.cut(c, true)
				break
			}
		}
		w.run(3 * time.Second)
	}
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, b.state(sb))
	require.GreaterOrEqual(t, a.Counters().Reconnects, uint64(20))
}

// A node that was stopped itself does not mistake its own pause for silence of the others.
func TestPausedNodeLosesNoPeer(t *testing.T) {
	w, a, _, sa, _ := pair(t, syncOptions("s"))
	w.run(time.Second)
	w.now = w.now.Add(time.Hour)
	a.Advance(w.now)
	require.Equal(t, SessionOpen, a.state(sa))
}

func TestGoodbyeIsNotALoss(t *testing.T) {
	w, a, b, sa, _ := pair(t, syncOptions("s"))
	_, err := b.Send(w.now, b.sessions[0].id, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	w.run(5 * time.Millisecond)
	b.Goodbye(w.now)
	w.run(time.Minute)
	state, err := a.Peer("b")
	require.Equal(t, PeerClosed, state)
	require.ErrorIs(t, err, ErrPeerClosed)
	slot := Slot{Tag: 2, Data: make([]byte, 8)}
	_, err = a.Receive(w.now, sa, &slot)
	require.NoError(t, err, "what had arrived can be received")
	_, err = a.Receive(w.now, sa, &slot)
	require.ErrorIs(t, err, ErrPeerClosed)
	for _, o := range a.news {
		require.NotEqual(t, OutPeerLost, o.Kind)
	}
}

// A new node under the name of one that stopped silently: the old sessions are lost, the new association
// works.
func TestNewIncarnationAfterLoss(t *testing.T) {
	w, a, b, sa, _ := pair(t, syncOptions("s"))
	b.dead = true
	next := w.add("b2", func(c *NodeConfig) { c.Name, c.Rails[0].Link = "b", namedLink{worldLink{w}, "b", 0} })
	w.nodes[b.index], next.index, next.hidden = next, b.index, true
	w.nodes = w.nodes[:2]
	require.NoError(t, next.Connect(w.now, "a", "a"))
	// Its connections stand, so nothing but the silence shows that it is dead.
	heard := a.peer("b").LastHeard
	up := func() bool { state, _ := next.Peer("a"); return state == PeerUp }
	require.False(t, w.until(heard.Add(a.config.PeerTimeout-time.Millisecond).Sub(w.now), up),
		"in before the first was lost")
	_, why := next.Peer("a")
	require.ErrorContains(t, why, `peer "a" says: the name "b" is in use by another peer`)
	require.Equal(t, SessionOpen, a.state(sa))
	require.True(t, w.until(control.LastBackoff+control.LastBackoff/2+100*time.Millisecond, up), "the name is never free")
	_, err := a.State(sa)
	var lost *PeerLostError
	require.ErrorAs(t, err, &lost)
	sa, err = a.Open(w.now, "b", syncOptions("s"))
	require.NoError(t, err)
	sb, err := next.Open(w.now, "a", syncOptions("s"))
	require.NoError(t, err)
	w.run(100 * time.Millisecond)
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, next.state(sb))
}

// Connections that say nothing, or malformed messages, are closed, and their number is bounded.
func TestUnauthenticatedConnections(t *testing.T) {
	w := newWorld(t, 1)
	a := w.add("a", nil)
	for i := range ConnID(100) {
		a.ControlUp(w.now, i+1, "")
	}
	require.Len(t, a.associations.Conns, 64)
	require.EqualValues(t, 37, a.associations.Conns[0].ID, "the oldest made no room")
	a.Control(w.now, 100, []byte("GET / HTTP/1.1\r\n\r\n"))
	require.Len(t, a.associations.Conns, 63)
	require.Equal(t, uint64(1), a.Counters().ControlMalformed)
	w.run(DefaultHandshake(0) + time.Second)
	require.Empty(t, a.associations.Conns)
	hangups := 0
	for _, o := range a.Drain(nil) {
		require.Equal(t, OutDisconnect, o.Kind)
		hangups++
	}
	require.Zero(t, hangups, "the world has drained them")
	require.Empty(t, a.peers)
}

// A message that arrives twice changes nothing and keeps the connection.
func TestDuplicateMessages(t *testing.T) {
	w := newWorld(t, 9)
	w.doubleChance = 1
	a, b := w.add("a", nil), w.add("b", nil)
	w.connect()
	w.run(10 * time.Millisecond)
	for range 5 {
		sa, err := a.Open(w.now, "b", syncOptions("s"))
		require.NoError(t, err)
		sb, err := b.Open(w.now, "a", syncOptions("s"))
		require.NoError(t, err)
		w.run(10 * time.Millisecond)
		require.Equal(t, SessionOpen, a.state(sa))
		a.Close(w.now, sa)
		w.run(10 * time.Millisecond)
		b.Close(w.now, sb)
		b.Close(w.now, sb)
		a.Close(w.now, sa)
	}
	for _, n := range []*worldNode{a, b} {
		require.Greater(t, n.Counters().ControlDuplicate, uint64(10))
		require.Zero(t, n.Counters().ControlMalformed)
		require.Zero(t, n.Counters().Reconnects)
	}
}

// If both ends dial at the same instant, both keep the connection that the higher name dialled.
func TestBothDial(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		a, b := w.add("a", nil), w.add("b", nil)
		grace := a.associations.DialGrace
		a.associations.DialGrace = 0
		require.NoError(t, a.Connect(w.now, "b", "b"))
		a.associations.DialGrace = grace
		require.NoError(t, b.Connect(w.now, "a", "a"))
		w.run(20 * time.Second)
		require.Len(t, w.conns, 2)
		dialled := b.peer("a").Conn.Dialled != ""
		require.True(t, dialled)
		dialled = a.peer("b").Conn.Dialled != ""
		require.False(t, dialled)
		require.LessOrEqual(t, a.Counters().Reconnects+b.Counters().Reconnects, uint64(2))
	}
}

// When the process of a peer on the same host ends, its connections break and nothing listens at its address: both ends
// of the names' order know within a tenth of a second. On another host something else may listen there again.
func TestKilledOnThisHost(t *testing.T) {
	for _, host := range []string{"host-a", "host-b"} {
		for killed, other := range []int{1, 0} {
			w := newWorld(t, 5)
			onHost := func(c *NodeConfig) { c.Host, c.Process = host, w.rand.Uint64() }
			nodes := []*worldNode{w.add("a", func(c *NodeConfig) { c.Process = 7 }), w.add("b", onHost)}
			w.connect()
			w.run(10 * time.Millisecond)
			n := nodes[other]
			nodes[killed].dead, nodes[killed].killed = true, true
			for c := range w.conns {
				if c.node == other {
					w.cut(c, true)
				}
			}
			begin := w.now
			lost := func() bool { state, _ := n.Peer(nodes[killed].Name()); return state == PeerLost }
			require.True(t, w.until(time.Minute, lost))
			_, err := n.Peer(nodes[killed].Name())
			if host == "host-a" {
				require.Less(t, w.now.Sub(begin), 100*time.Millisecond)
				require.ErrorContains(t, err, "its process on this host has ended: nothing listens at")
			} else {
				require.InDelta(t, 4, w.now.Sub(begin).Seconds(), 0.6)
				require.ErrorContains(t, err, "nothing heard from it for 4s")
			}
		}
	}
}
