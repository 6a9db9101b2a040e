package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// compared returns railed nodes whose rail waits for its comparison.
func compared(t *testing.T) (w *world, a, b *worldNode) {
	return railedWith(t, nil, func(c *NodeConfig) { c.Rails[1].Compare = true })
}

var fasterRail = Comparison{Bytes: 128 << 10, Base: 30 * time.Microsecond, Rail: 20 * time.Microsecond, Faster: true}

// Sessions use a rail that is to be compared once it was found to be faster: those that are open move to it, and
// messages that are under way arrive once.
func TestComparedRail(t *testing.T) {
	w, a, b := compared(t)
	require.Equal(t, InfiniBand, a.ToCompare("b"))
	require.Equal(t, InfiniBand, b.ToCompare("a"))
	require.Zero(t, a.ToCompare("nobody"))
	sa, sb := openBoth(w, a, b, syncOptions("halo"))
	x, y := a.session(sa), b.session(sb)
	w.run(2 * time.Second)
	require.Equal(t, Ethernet, x.conditions.Network, "it was not compared")
	require.Equal(t, "ib was not compared with ether", x.networkReason())

	_, err := a.Send(w.now, sa, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	for _, n := range []*worldNode{a, b} {
		n.Compared(w.now, "a", InfiniBand, fasterRail)
		n.Compared(w.now, "b", InfiniBand, fasterRail)
		n.Compared(w.now, "nobody", InfiniBand, fasterRail)
	}
	require.True(t, w.until(time.Second, func() bool {
		return x.conditions.Network == InfiniBand && y.conditions.Network == InfiniBand
	}))
	require.Contains(t, x.networkReason(), "ib is faster than ether here: 128 KiB one way in 20 µs, ether 30")
	require.Zero(t, a.ToCompare("b"), "once")
	w.run(10 * time.Millisecond)
	got, err := b.Receive(w.now, sb, &Slot{Tag: 2, Data: make([]byte, 8)})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Label)
	require.Zero(t, b.Unread(sb))

	later, _ := openBoth(w, a, b, syncOptions("later"))
	require.Equal(t, InfiniBand, a.session(later).conditions.Network)
	a.fall(w)
	require.True(t, w.until(time.Second, func() bool { return x.conditions.Network == Ethernet }))
	a.rise(w)
	require.True(t, w.until(5*time.Second, func() bool { return x.conditions.Network == InfiniBand }), "still chosen")
}

// A rail that is not faster stays unused, and sessions say why.
func TestComparedRailIsSlower(t *testing.T) {
	w, a, b := compared(t)
	slower := Comparison{Bytes: 128 << 10, Base: 20 * time.Microsecond, Rail: 30 * time.Microsecond}
	a.Compared(w.now, "b", InfiniBand, slower)
	b.Compared(w.now, "a", InfiniBand, slower)
	require.Zero(t, a.ToCompare("b"))
	sa, _ := openBoth(w, a, b, syncOptions("halo"))
	w.run(2 * time.Second)
	require.Equal(t, Ethernet, a.session(sa).conditions.Network)
	require.Contains(t, a.session(sa).networkReason(), "ib is not faster by a tenth than ether here")
}

// If only one end has the result yet, a session opens on the base rail. The end with the higher name moves it.
func TestComparedAtOneEnd(t *testing.T) {
	w, a, b := compared(t)
	w.run(2 * time.Second)
	b.Compared(w.now, "a", InfiniBand, fasterRail)
	sa, sb := openBoth(w, a, b, syncOptions("halo"))
	require.True(t, w.until(time.Second, func() bool {
		return a.session(sa).conditions.Network == InfiniBand && b.session(sb).conditions.Network == InfiniBand
	}))
}

// A session that asks for a network begins on it and stays, whether the rail is chosen or not.
func TestSessionOfANetwork(t *testing.T) {
	w, a, b := compared(t)
	o := syncOptions("over ib")
	o.Network = InfiniBand
	sa, _ := openBoth(w, a, b, o)
	require.Equal(t, InfiniBand, a.session(sa).conditions.Network)
	o.Name, o.Network = "over ether", Ethernet
	sb, _ := openBoth(w, a, b, o)
	for _, n := range []*worldNode{a, b} {
		n.Compared(w.now, "a", InfiniBand, fasterRail)
		n.Compared(w.now, "b", InfiniBand, fasterRail)
	}
	w.run(3 * time.Second)
	require.Equal(t, InfiniBand, a.session(sa).conditions.Network)
	require.Equal(t, Ethernet, a.session(sb).conditions.Network)
	o.Name, o.Network = "no network", 99
	_, err := a.Open(w.now, "b", o)
	require.ErrorContains(t, err, "asks for network 99")
}

// Accept does not return the sessions that a node opens for itself.
func TestAcceptLeavesReservedNamesOut(t *testing.T) {
	w, a, b := compared(t)
	for _, name := range []string{ReservedName + "x", "user"} {
		_, err := a.Open(w.now, "b", syncOptions(name))
		require.NoError(t, err)
	}
	w.run(10 * time.Millisecond)
	_, o, ok := b.Accept(func(string) bool { return true })
	require.True(t, ok)
	require.Equal(t, "user", o.Name)
	require.Equal(t, microproto.ModeSynchronous, o.Mode)
	_, _, ok = b.Accept(func(string) bool { return true })
	require.False(t, ok)
}
