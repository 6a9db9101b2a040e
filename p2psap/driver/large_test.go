package driver

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// busy is a link that takes no frame at every third call, and one at the others.
type busy struct {
	*ether.Link
	calls atomic.Int64
}

func (l *busy) Send(batch []microproto.Frame) (int, error) {
	if l.calls.Add(1)%3 == 0 {
		return 0, nil
	}
	return l.Link.Send(batch[:min(1, len(batch))])
}

func (l *busy) Writable(f func()) { time.AfterFunc(100*time.Microsecond, f) }

// narrow gives a node a link of short queues, which is busy and loses much.
func narrow(t *testing.T) func(*Config) {
	return func(c *Config) {
		require.NoError(t, c.Rails[0].Link.Close())
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1", MTU: 1500, SocketBytes: 256 << 10})
		require.NoError(t, err)
		c.Rails, c.Catalog = []Rail{{Network: p2psap.Ethernet, Link: &busy{Link: link}}}, ctp.Catalog()
	}
}

func words(b []byte, w uint64) {
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], w)
	}
}

const spoilt = 0xeeeeeeeeeeeeeeee

// Large messages are read from the user's memory only until they are accepted.
func TestLargeMessagesFromTheUsersMemory(t *testing.T) {
	const size, messages, under = 200 << 10, 60, 3
	a, b := start(t, "a", narrow(t)), start(t, "b", narrow(t))
	join(t, a, b)
	o := p2psap.OpenOptions{Name: "s", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: size}}}
	sa, sb := open(t, a, b, o)
	ctx := limit(t)
	sent := make(chan error, 1)
	go func() {
		var buffers [under][]byte
		var transfers [under]p2psap.Transfer
		for k := uint64(1); k <= messages; k++ {
			i := k % under
			if buffers[i] == nil {
				buffers[i] = make([]byte, size)
			}
			for t := transfers[i]; t > 0; {
				r, err := sa.Wait(ctx, t)
				if err != nil {
					sent <- err
					return
				}
				if r.Accepted {
					words(buffers[i], spoilt)
					break
				}
			}
			words(buffers[i], k)
			var err error
			if transfers[i], err = sa.Send(ctx, 1, p2psap.Label(k), buffers[i]); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	slot := p2psap.Slot{Tag: 1, Data: make([]byte, size)}
	for k := uint64(1); k <= messages; k++ {
		got, err := sb.Receive(ctx, &slot)
		require.NoError(t, err)
		require.Equal(t, size, got.Length)
		for i := 0; i < size; i += 8 {
			if w := binary.BigEndian.Uint64(slot.Data[i:]); w != k {
				require.Fail(t, "spoilt", "message %d, byte %d: %x", k, i, w)
			}
		}
	}
	require.NoError(t, <-sent)
}

// An asynchronous value may be overwritten as soon as Send returns, however busy the link.
func TestLargeValueMayBeReusedAfterSend(t *testing.T) {
	const size, values = 128 << 10, 300
	a, b := start(t, "a", narrow(t)), start(t, "b", narrow(t))
	join(t, a, b)
	o := p2psap.OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: size}}}
	sa, sb := open(t, a, b, o)
	ctx := limit(t)
	data, slot := make([]byte, size), p2psap.Slot{Tag: 1, Data: make([]byte, size)}
	look := func(most uint64) {
		_, err := sb.Receive(ctx, &slot)
		require.NoError(t, err)
		for i := 0; i < size; i += 8 {
			if w := binary.BigEndian.Uint64(slot.Data[i:]); w > most {
				require.Fail(t, "spoilt", "after %d values, byte %d: %x", most, i, w)
			}
		}
	}
	for k := uint64(1); k <= values; k++ {
		words(data, k)
		_, err := sa.Send(ctx, 1, p2psap.Label(k), data)
		require.NoError(t, err)
		words(data, spoilt)
		if k%10 == 0 {
			look(k)
		}
	}
	await.Until(t, func() bool {
		look(values)
		return binary.BigEndian.Uint64(slot.Data) != 0
	}, "a value")
}
