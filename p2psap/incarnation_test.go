package p2psap

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// dialAs opens a connection to a node as an unauthenticated peer does, says hello under a name and returns
// what the node sends on it.
func (w *world) dialAs(to *worldNode, h *control.Hello) (said []control.Kind, hung bool, theirs control.Hello) {
	w.lastID++
	id := w.lastID
	to.ControlUp(w.now, id, "")
	to.Control(w.now, id, control.Encode(control.KindHello, 0, 0, h))
	for _, o := range to.Drain(nil) {
		if o.Conn != id {
			w.carryOut(to, o)
			continue
		}
		switch o.Kind {
		case OutDisconnect:
			hung = true
		case OutControl:
			m, err := control.Parse(o.Data)
			require.NoError(w.t, err)
			said = append(said, m.Kind)
			b, err := m.Decode()
			require.NoError(w.t, err)
			if h, ok := b.(*control.Hello); ok {
				theirs = *h
			}
		}
	}
	return said, hung, theirs
}

// as returns a hello under a name, of a node that matches to.
func as(to *worldNode, name string, incarnation uint64) *control.Hello {
	h, err := (*controlHost)(to.Node).Hello(0, "")
	require.NoError(to.w.t, err)
	h.Name, h.Incarnation, h.Host, h.Offer = name, incarnation, "elsewhere", []byte("b")
	return h
}

// The name of a live peer cannot be taken: not with another incarnation, not with the one that the peer shows
// others, not with none, and not with a hello that does not match.
func TestLiveNameCannotBeTaken(t *testing.T) {
	w, a, b, sa, sb := pair(t, syncOptions("s"))
	_, _, learnt := w.dialAs(b, as(b, "x", 7)) // what b tells a stranger of itself
	require.NotZero(t, learnt.Incarnation)
	require.NotEqual(t, learnt.Incarnation, a.peer("b").Incarnation, "b shows every peer one incarnation")
	was := a.peer("b").Conn.ID
	for name, h := range map[string]*control.Hello{
		"another life":      as(a, "b", 99),
		"seen elsewhere":    as(a, "b", learnt.Incarnation),
		"no incarnation":    as(a, "b", 0),
		"another program":   {Run: "run", Version: "v2", Name: "b", Network: Memory, Incarnation: 99},
		"the node's own":    as(a, "a", 99),
		"its configuration": as(a, "b", b.config.Incarnation),
	} {
		_, hung, theirs := w.dialAs(a, h)
		require.True(t, hung, name)
		require.Zero(t, theirs.Incarnation, "%s: the stranger got what b gets", name)
		conn := a.peer("b").Conn.ID
		require.Equal(t, was, conn, name)
	}
	said, _, _ := w.dialAs(a, as(a, "b", 99))
	require.Equal(t, []control.Kind{control.KindRefusal}, said)
	w.run(2 * a.config.PeerTimeout)
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, b.state(sb))
	require.Zero(t, a.Counters().Reconnects+b.Counters().Reconnects)
}

// The name of a peer that is still being measured cannot be taken either.
func TestNameOfANewPeerCannotBeTaken(t *testing.T) {
	w := newWorld(t, 1)
	addresses := func(s string) func(*NodeConfig) {
		return func(c *NodeConfig) { c.Addresses = []netip.Prefix{netip.MustParsePrefix(s)} }
	}
	a, b := w.add("a", addresses("10.0.0.1/24")), w.add("b", addresses("10.0.0.2/24"))
	require.NoError(t, b.Connect(w.now, "a", "a"))
	require.True(t, w.until(time.Second, func() bool { p := a.peer("b"); return p != nil && p.Connected() }))
	require.Equal(t, PeerNew, PeerState(a.peer("b").State))
	for _, version := range []string{"v1", "v2"} {
		h := as(a, "b", 99)
		h.Version = version
		_, hung, _ := w.dialAs(a, h)
		require.True(t, hung)
	}
	require.True(t, w.until(time.Second, func() bool { state, _ := b.Peer("a"); return state == PeerUp }))
}

// Of two live nodes of one name the second is refused as long as the first is heard, and accepted as soon as
// the first has closed.
func TestSecondIncarnationWaits(t *testing.T) {
	w, a, b, sa, sb := pair(t, syncOptions("s"))
	w.nodes[b.index] = nil
	next := w.add("b2", func(c *NodeConfig) { c.Name, c.Rails[0].Link = "b", namedLink{worldLink{w}, "b", 0} })
	w.nodes[b.index] = b
	require.NoError(t, next.Connect(w.now, "a", "a"))
	w.run(5 * a.config.PeerTimeout)
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, b.state(sb))
	state, why := next.Peer("a")
	require.Equal(t, PeerNew, state)
	require.ErrorContains(t, why,
		"is in use by another peer, from which it still hears; it is free once that one is silent for 4s")
	require.Positive(t, a.Counters().PeersRefused)
	b.Goodbye(w.now)
	require.True(t, w.until(2*control.LastBackoff, func() bool {
		state, err := next.Peer("a")
		return state == PeerUp &&
			err == nil
	}))
}

// Connections without a hello make room for a peer, which is accepted while they are open.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.add("a", nil), w.add("b", nil)
	w.lastID = 1000
	for i := range ConnID(500) {
		a.ControlUp(w.now, i+1, "")
	}
	require.NoError(t, b.Connect(w.now, "a", "a"))
	require.True(t, w.until(100*time.Millisecond, func() bool { state, _ := b.Peer("a"); return state == PeerUp }))
	require.Len(t, a.associations.Conns, a.config.Limits.PendingHellos)
}

// Copies of a host are distinguished by their addresses. Both ends get the same result, also where only one
// of them notices: frames are protected and the distance is measured.
func TestCopiesOfAHost(t *testing.T) {
	for name, c := range map[string]struct {
		a, b bool // what each end finds of the other's address
		same bool
	}{
		"one host":     {true, true, true},
		"copies":       {false, false, false},
		"only a finds": {false, true, false},
		"only b finds": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			add := func(name, address string, process uint64, here bool) *worldNode {
				return w.add(name, func(c *NodeConfig) {
					c.Host, c.Process, c.SameHost = "boot/net/name", process, func(ConnID) bool { return here }
					c.Addresses = []netip.Prefix{netip.MustParsePrefix(address)}
					c.Entropy = func(b []byte) { copy(b, bytes.Repeat([]byte{byte(process)}, len(b))) }
				})
			}
			a, b := add("a", "10.0.0.1/24", 1, c.a), add("b", "10.0.1.1/24", 2, c.b)
			w.connect()
			w.run(time.Second)
			for _, x := range []struct {
				n    *worldNode
				peer string
			}{{a, "b"}, {b, "a"}} {
				p := x.n.peer(x.peer)
				require.Equal(t, PeerUp, PeerState(p.State))
				require.Equal(t, !c.same, x.n.protects(p))
				require.Equal(t, c.same, x.n.Finding(x.peer).Locality == SameHost, "%v", x.n.Finding(x.peer).Reason)
				if !c.same {
					require.Contains(t, x.n.Finding(x.peer).Reason, "round trip")
				}
			}
		})
	}
}
