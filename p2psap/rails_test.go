package p2psap

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// ship carries the frames that wait for a node's rail to the other node.
func (w *world) ship(n *worldNode) {
	if n.cable == nil {
		return
	}
	frames := n.Frames(1)
	for _, f := range frames {
		n.cable.send(f)
		w.after(w.latency, func() {
			if len(n.cable.flying) == 0 {
				return
			}
			other := w.nodes[1-n.index]
			if f, ok := other.cable.arrived(n.cable); ok {
				other.Input(w.now, 1, f)
			}
		})
	}
	n.Sent(1, len(frames))
}

// railed returns two connected nodes with a rail between them.
func railed(t *testing.T, out *bytes.Buffer) (w *world, a, b *worldNode) {
	return railedWith(t, out, func(*NodeConfig) {})
}

func railedWith(t *testing.T, out *bytes.Buffer, change func(*NodeConfig)) (w *world, a, b *worldNode) {
	w = newWorld(t, 12)
	if out != nil {
		w.script = func(format string, a ...any) { fmt.Fprintf(out, format+"\n", a...) }
	}
	add := func(name string, self int) *worldNode {
		end := newCable(&cable{}, self)
		n := w.add(name, func(c *NodeConfig) {
			c.Catalog, c.Rails[0].Network = ctp.Catalog(), Ethernet
			c.Rails = append(c.Rails, Rail{Network: InfiniBand, Link: end})
			change(c)
		})
		n.cable = end
		return n
	}
	a, b = add("a", 0), add("b", 1)
	w.connect()
	w.run(20 * time.Millisecond)
	return w, a, b
}

func (n *worldNode) fall(w *world) {
	n.RailEvent(w.now, 1, microproto.LinkEvent{Err: rail.ErrNoReason})
	w.settle()
}

func (n *worldNode) rise(w *world) {
	n.RailEvent(w.now, 1, microproto.LinkEvent{Up: true})
	w.settle()
}

// The transcript of a path: it comes up, a session opens on it, leaves it with messages in flight, and comes
// back.
func TestRailTranscript(t *testing.T) {
	var out bytes.Buffer
	w, a, b := railed(t, &out)
	sa, err := a.Open(w.now, "b", syncOptions("halo"))
	require.NoError(t, err)
	sb, err := b.Open(w.now, "a", syncOptions("halo"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	data := make([]byte, 8)
	_, err = a.Send(w.now, sa, 2, 1, data)
	require.NoError(t, err)
	w.settle()
	a.cable.flying = nil
	a.fall(w)
	w.run(20 * time.Millisecond)
	for _, x := range []struct {
		n  *worldNode
		id SessionID
	}{{a, sa}, {b, sb}} {
		i, err := x.n.Info(x.id)
		require.NoError(t, err)
		require.Equal(t, Ethernet, i.Conditions.Network)
		require.EqualValues(t, 1, i.Moves)
		require.Contains(t, i.NetworkReason, "ib is down at a")
	}
	require.EqualValues(t, 1, a.Accepted(sa))
	got, err := b.Receive(w.now, sb, &Slot{Tag: 2, Data: data})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Label)
	a.rise(w)
	w.run(1200 * time.Millisecond)
	i, err := b.Info(sb)
	require.NoError(t, err)
	require.Equal(t, InfiniBand, i.Conditions.Network)
	require.Equal(t, []RailInfo{{InfiniBand, true, "", 1, true, ""}}, a.Rails("b"))
	golden(t, "testdata/rail.golden", out.String())
}

// If only one end knows yet that a path came up or went down, both open the session on the base rail.
func TestOpenWhileARailChanges(t *testing.T) {
	for what, meanwhile := range map[string]func(w *world, b *worldNode){
		"falls": func(w *world, b *worldNode) { b.fall(w) },
		"comes": func(w *world, b *worldNode) { b.rise(w); w.run(150 * time.Millisecond) },
	} {
		t.Run(what, func(t *testing.T) {
			w, a, b := railed(t, nil)
			if what == "comes" {
				b.fall(w)
				w.run(10 * time.Millisecond)
			}
			sa, err := a.Open(w.now, "b", syncOptions("halo"))
			require.NoError(t, err)
			meanwhile(w, b)
			sb, err := b.Open(w.now, "a", syncOptions("halo"))
			require.NoError(t, err)
			require.True(t, w.until(time.Second, func() bool { return a.opened[sa] && b.opened[sb] }))
			x, y := a.session(sa), b.session(sb)
			require.NotEqual(t, x.mine.Network, y.mine.Network, "they wanted different ones")
			require.Equal(t, Ethernet, x.conditions.Network)
			require.Equal(t, x.conditions, y.conditions)
			b.rise(w)
			require.True(t, w.until(5*time.Second, func() bool {
				return x.conditions.Network == InfiniBand && y.conditions.Network == InfiniBand && y.renegotiation.Mine.Cause == 0
			}))
		})
	}
}

// Rails of one network are refused, and so is a rail without a link.
func TestRailsRefused(t *testing.T) {
	w := newWorld(t, 1)
	link := namedLink{worldLink: worldLink{w}, self: "x"}
	for says, rails := range map[string][]Rail{
		"two links for network ib":    {{Network: InfiniBand, Link: link}, {Network: InfiniBand, Link: link}},
		"two links for network ether": {{Network: Ethernet, Link: link}},
		"needs a link":                {{Network: InfiniBand}},
		"rails":                       make([]Rail, control.MaxRails+1),
	} {
		_, err := NewNode(NodeConfig{Name: "x", Catalog: standIns(), Policy: TablePolicy{},
			Rails: append([]Rail{{Link: link}}, rails...)})
		require.ErrorContains(t, err, says)
	}
}

// Rails still returns why a rail was down after the peer has gone, for the error that names the missing network.
func TestRailsOfAPeerThatIsGone(t *testing.T) {
	w, a, b := railed(t, nil)
	b.fall(w)
	w.run(20 * time.Millisecond)
	reason := a.Rails("b")[0].Reason
	require.Contains(t, reason, "down at b")
	b.Goodbye(w.now)
	w.run(20 * time.Millisecond)
	state, _ := a.Peer("b")
	require.Equal(t, PeerClosed, state)
	require.Equal(t, reason, a.Rails("b")[0].Reason)
	require.False(t, a.Rails("b")[0].Up)
}

// A session uses a rail only in the mode that the rail carries. A change of the mode leaves the rail, and the change
// back returns to it; messages of either mode arrive.
func TestRailOfOneMode(t *testing.T) {
	w, a, b := railed(t, nil)
	a.cable.only, b.cable.only = true, true
	sa, err := a.Open(w.now, "b", syncOptions("halo"))
	require.NoError(t, err)
	sb, err := b.Open(w.now, "a", syncOptions("halo"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	for k, c := range []struct {
		mode    microproto.Mode
		network Network
	}{
		{microproto.ModeSynchronous, InfiniBand}, {microproto.ModeAsynchronous, Ethernet},
		{microproto.ModeSynchronous, InfiniBand},
	} {
		if k > 0 {
			for _, x := range []struct {
				n  *worldNode
				id SessionID
			}{{a, sa}, {b, sb}} {
				_, err := x.n.Adapt(w.now, x.id, c.mode)
				require.NoError(t, err)
			}
			w.settle()
			w.run(3 * time.Second)
			count, err := a.Adapted(sa)
			require.NoError(t, err, "the change to %v", c.mode)
			require.EqualValues(t, k, count)
		}
		i, err := b.Info(sb)
		require.NoError(t, err)
		require.Equal(t, c.mode, i.Conditions.Mode)
		require.Equal(t, c.network, i.Conditions.Network, "%v", c.mode)
		_, err = a.Send(w.now, sa, 2, Label(k+1), make([]byte, 8))
		require.NoError(t, err)
		w.settle()
		w.run(20 * time.Millisecond)
		got, err := b.Receive(w.now, sb, &Slot{Tag: 2, Data: make([]byte, 8)})
		require.NoError(t, err)
		require.EqualValues(t, k+1, got.Label)
	}
}
