package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// A channel with a congestion window selects the segments that wait. If the node replaced its frames on a
// busy link, their numbers would be missing at the other end, and the window would shrink for losses that did
// not happen.
func TestBusyLinkUnderACongestionWindow(t *testing.T) {
	w := newWorld(t, 7)
	at := func(cluster string) func(*NodeConfig) {
		return func(c *NodeConfig) { c.Catalog, c.Rails[0].Network, c.Cluster = ctp.Catalog(), Ethernet, cluster }
	}
	a, b := w.add("a", at("one")), w.add("b", at("two"))
	w.connect()
	w.run(10 * time.Millisecond)
	o := OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, 40_000}, {2, 800}}}
	sa, err := a.Open(w.now, "b", o)
	require.NoError(t, err)
	_, err = b.Open(w.now, "a", o)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	data := make([]byte, 40_000)
	send := func(label Label) {
		_, err := a.Send(w.now, sa, 1, label, data)
		require.NoError(t, err)
	}
	for label := range Label(20) {
		send(label)
		w.run(20 * time.Millisecond)
	}
	// Two values that the window lets pass stay in the queue of a busy link, both.
	w.run(time.Second)
	a.busy = true
	for label := range Label(2) {
		_, err := a.Send(w.now, sa, 2, label, data[:800])
		require.NoError(t, err)
	}
	require.Len(t, a.Frames(0), 2)
	for label := Label(20); label < 60; label++ {
		send(label)
	}
	require.Zero(t, a.Counters().FramesReplaced)
	info, err := a.Info(sa)
	require.NoError(t, err)
	require.Greater(t, info.Replaced, uint64(500), "values gave way to newer ones behind the window")
}
