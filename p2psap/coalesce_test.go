package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Small messages that may wait do so while an earlier one is not accepted, and are sent in one frame.
func TestSmallMessagesCoalesce(t *testing.T) {
	w := newWorld(t, 5)
	set := func(c *NodeConfig) { c.Catalog = ctp.Catalog() }
	a, b := w.add("a", set), w.add("b", set)
	w.connect()
	w.run(10 * time.Millisecond)
	sa, sb := openAs(t, w, a, b, microproto.ModeSynchronous)
	queued := func() int { return len(a.Frames(0)) }

	for i := range 5 {
		_, waits, err := a.SendCoalescing(w.now, sa, 1, Label(i), []byte{byte(i), 1, 2, 3, 4, 5, 6, 7})
		require.NoError(t, err)
		require.Equal(t, i > 0, waits, "nothing is on its way before the first")
		require.Equal(t, 1, queued())
	}
	require.True(t, a.Flush(w.now))
	require.Equal(t, 2, queued(), "the other four are one frame")
	require.True(t, a.Flush(w.now))
	require.Equal(t, 2, queued())
	w.settle()
	w.run(time.Second)

	slot := Slot{Tag: 1, Data: make([]byte, 8)}
	for i := range 5 {
		got, err := b.Receive(w.now, sb, &slot)
		require.NoError(t, err)
		require.Equal(t, Label(i), Label(got.Label))
		require.Equal(t, []byte{byte(i), 1, 2, 3, 4, 5, 6, 7}, slot.Data)
	}
	_, err := b.Receive(w.now, sb, &slot)
	require.ErrorIs(t, err, ErrNothing)
}
