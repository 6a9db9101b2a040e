package driver

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// viewed gives a node a link over loopback.
func viewed(t *testing.T) func(*Config) {
	return func(c *Config) {
		require.NoError(t, c.Rails[0].Link.Close())
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		c.Rails, c.Catalog = []Rail{{Network: p2psap.Ethernet, Link: link}}, ctp.Catalog()
	}
}

// A view has the pieces of the newest message, keeps those of the message before, and outlives its session.
func TestReceiveView(t *testing.T) {
	const size = 128 << 10
	a, b := start(t, "a", viewed(t)), start(t, "b", viewed(t))
	join(t, a, b)
	ctx := limit(t)
	o := options("s", microproto.ModeSynchronous)
	o.Slots = []p2psap.SlotSpec{{Tag: 1, Length: size}}
	sa, sb := open(t, a, b, o)
	var v p2psap.View
	var before [][]byte
	for k := uint64(1); k <= 5; k++ {
		data := make([]byte, size)
		words(data, k)
		_, err := sa.Send(ctx, 1, p2psap.Label(k), data)
		require.NoError(t, err)
		got, err := sb.ReceiveView(ctx, 1, &v)
		require.NoError(t, err)
		require.Equal(t, microproto.Arrival{Label: k, Newest: k, Length: size, Fresh: true, Complete: true}, got)
		require.True(t, bytes.Equal(data, bytes.Join(v.Pieces, nil)))
		if k > 1 {
			earlier := make([]byte, size) // data may be sent again
			words(earlier, k-1)
			require.True(t, bytes.Equal(earlier, bytes.Join(before, nil)), "the message before")
		}
		before = v.Pieces
	}
	_, fresh, err := sb.PollView(1, &v)
	require.NoError(t, err)
	require.False(t, fresh)
	_, err = sb.ReceiveView(ctx, 2, &v)
	require.ErrorIs(t, err, p2psap.ErrSlot)
	require.NoError(t, sa.Close())
	_, err = sb.ReceiveView(ctx, 1, &v)
	require.ErrorIs(t, err, p2psap.ErrPeerClosed)
	require.NoError(t, sb.Close())
	data := make([]byte, size)
	words(data, 5)
	require.True(t, bytes.Equal(data, bytes.Join(v.Pieces, nil)))
	v.Release()
}

// A view of an asynchronous session has the newest value once all of it has arrived.
func TestReceiveViewOfAValue(t *testing.T) {
	const size = 40_000
	a, b := start(t, "a", viewed(t)), start(t, "b", viewed(t))
	join(t, a, b)
	o := options("s", microproto.ModeAsynchronous)
	o.Slots = []p2psap.SlotSpec{{Tag: 1, Length: size}}
	sa, sb := open(t, a, b, o)
	data := make([]byte, size)
	var v p2psap.View
	for k := uint64(1); k <= 3; k++ {
		words(data, k)
		await.Until(t, func() bool { // values may be lost
			_, err := sa.Send(limit(t), 1, p2psap.Label(k), data)
			require.NoError(t, err)
			got, fresh, err := sb.PollView(1, &v)
			require.NoError(t, err)
			return fresh && got.Complete && got.Label == k
		}, "the value")
		require.Len(t, v.Pieces, 1)
		require.True(t, bytes.Equal(data, v.Pieces[0]))
	}
}
