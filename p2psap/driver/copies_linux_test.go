package driver

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// countingLink counts the bytes that it is given in the memory of users and in its own, and keeps the addresses of what
// it has received.
type countingLink struct {
	*ether.Link
	inPlace, own atomic.Int64
	mu           sync.Mutex
	received     []place
}

// place is where a frame lies.
type place struct{ from, to uintptr }

func (l *countingLink) Send(batch []microproto.Frame) (int, error) {
	var inPlace, own [64]int64
	for i := range batch {
		inPlace[i], own[i] = int64(len(batch[i].Body)), int64(len(batch[i].Data))
	}
	n, err := l.Link.Send(batch)
	for i := range n {
		l.inPlace.Add(inPlace[i])
		l.own.Add(own[i])
	}
	return n, err
}

func (l *countingLink) note(batch []microproto.Frame, n int, err error) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range n {
		at := uintptr(unsafe.Pointer(&batch[i].Data[0]))
		l.received = append(l.received, place{at, at + uintptr(len(batch[i].Data))})
	}
	return n, err
}

func (l *countingLink) Recv(batch []microproto.Frame) (int, error) {
	n, err := l.Link.Recv(batch)
	return l.note(batch, n, err)
}

func (l *countingLink) RecvTrains(batch []microproto.Frame) (int, error) {
	n, err := l.Link.RecvTrains(batch)
	return l.note(batch, n, err)
}

func (l *countingLink) TryRecv(batch []microproto.Frame) (int, error) {
	n, err := l.Link.TryRecv(batch)
	return l.note(batch, n, err)
}

func (l *countingLink) AwaitRecv(batch []microproto.Frame) (int, error) {
	n, err := l.Link.AwaitRecv(batch)
	return l.note(batch, n, err)
}

// A halo of 128 KiB over UDP is copied four times: when it is packed, by the kernel at either end, and when it is
// unpacked. In between, the sender leaves it in the memory of its user, and the receiver in that of the link.
func TestCopiesOfAHalo(t *testing.T) {
	const size = 128 << 10
	var links [2]*countingLink
	counted := func(i int) func(*Config) {
		return func(c *Config) {
			require.NoError(t, c.Rails[0].Link.Close())
			link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
			require.NoError(t, err)
			if link.Caps(microproto.ModeSynchronous).Gather == 0 {
				t.Skip("the kernel has no segmentation offload (GSO): single frames are copied once more")
			}
			links[i] = &countingLink{Link: link}
			c.Rails, c.Catalog = []Rail{{Network: p2psap.Ethernet, Link: links[i]}}, ctp.Catalog()
		}
	}
	a, b := start(t, "a", counted(0)), start(t, "b", counted(1))
	join(t, a, b)
	ctx := limit(t)
	o := options("s", microproto.ModeSynchronous)
	o.Slots = []p2psap.SlotSpec{{Tag: 1, Length: size}}
	sa, sb := open(t, a, b, o)
	var v p2psap.View
	data := make([]byte, size)
	words(data, 7)
	inPlace, own := links[0].inPlace.Load(), links[0].own.Load()
	_, err := sa.Send(ctx, 1, 1, data)
	require.NoError(t, err)
	_, err = sb.ReceiveView(ctx, 1, &v)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, bytes.Join(v.Pieces, nil)))
	require.GreaterOrEqual(t, links[0].inPlace.Load()-inPlace, int64(size-size/64), "but for a short rest")
	require.Less(t, links[0].own.Load()-own, int64(size/8), "headers")
	links[1].mu.Lock()
	defer links[1].mu.Unlock()
	for _, p := range v.Pieces {
		at, inFrame := uintptr(unsafe.Pointer(&p[0])), false
		for _, s := range links[1].received {
			inFrame = inFrame || s.from <= at && at+uintptr(len(p)) <= s.to
		}
		require.True(t, inFrame, "a piece of %d bytes was copied", len(p))
	}
}
