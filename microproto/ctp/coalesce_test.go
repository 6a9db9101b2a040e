package ctp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// Coalesced messages arrive one by one, whatever their tags. They take one segment for as many as
// fit, and the credit of both ends is the same as for separate messages.
func TestCoalescedMessages(t *testing.T) {
	for name, names := range map[string][]string{"ether": syncEther, "infiniband": syncReady} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, names, nil, 1400, 1, calm).open()
			const count = 100
			last, spent := uint64(0), uint64(0)
			for i := range count {
				var err error
				last, err = r.sendMore(0, uint32(tag+i%3), uint64(i), pattern(i, uint64(i)), true)
				require.NoError(t, err)
				spent += cost(i)
			}
			require.Less(t, r.accepted(0), last, "full ones go, the last waits")
			sent := r.ends[0].Counters().Transmitted
			require.Positive(t, sent)
			require.True(t, r.flush(0))
			require.Equal(t, sent+1, r.ends[0].Counters().Transmitted)
			r.run(50 * time.Millisecond)
			require.Equal(t, last, r.accepted(0))
			require.EqualValues(t, count, last)
			require.EqualValues(t, count, r.ends[1].Endpoint().Arrivals())
			require.Less(t, r.ends[0].Counters().Transmitted, uint64(count)/10)
			var l microproto.HandoverState
			from, to := r.ends[0].Endpoint().(*Synchronous), r.ends[1].Endpoint().(*Synchronous)
			require.Equal(t, spent, *from.sent)
			require.Equal(t, spent, to.stored)
			dst := make([]byte, count)
			for i := range count {
				a, err := r.receive(1, uint32(tag+i%3), dst, nil)
				require.NoError(t, err)
				require.EqualValues(t, i, a.Label)
				require.Equal(t, pattern(i, uint64(i)), dst[:a.Length])
			}
			require.Equal(t, spent, *to.consumed)
			to.Export(&l)
			require.Empty(t, l.Unread)
		})
	}
}

// A message that is not coalesced is sent after those that are.
func TestCoalescingKeepsTheOrder(t *testing.T) {
	r := newRig(t, syncEther, nil, 1400, 1, calm).open()
	for i, n := range []int{8, 8, 5000, 0, 8} {
		_, err := r.sendMore(0, tag, uint64(i), pattern(n, uint64(i)), n < 5000)
		require.NoError(t, err)
	}
	require.True(t, r.flush(0))
	r.run(50 * time.Millisecond)
	got, labels := r.drain(1, 5000)
	require.Equal(t, []uint64{0, 1, 2, 3, 4}, labels)
	for i, n := range []int{8, 8, 5000, 0, 8} {
		require.Equal(t, pattern(n, uint64(i)), got[i])
	}
}

// Reserved tags are refused, and a malformed coalesced message fails the channel before any of it
// is stored.
func TestMalformedCoalescedMessage(t *testing.T) {
	r := newRig(t, syncEther, nil, 1400, 1, calm).open()
	_, err := r.send(0, coalescedTag, 1, nil)
	require.ErrorIs(t, err, ErrSlot)
	_, err = r.sendMore(0, coalescedTag, 1, nil, true)
	require.ErrorIs(t, err, ErrSlot)
	s := r.ends[0].Endpoint().(*Synchronous)
	require.NoError(t, r.Do(0, func(x *microproto.Exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		m.Payload = make([]byte, 100)
		s.sending.tags.Push(transferHeader{coalescedTag, 3, s.startTransfer(m.Payload)})
		microproto.Raise(x, microproto.MessageFromUser, m)
	}))
	_, err = r.Run(time.Millisecond)
	require.ErrorIs(t, err, errCoalesced)
	require.Zero(t, r.ends[1].Endpoint().Arrivals())
}

// unpack can process all data that validCoalesced accepts, which includes all that pack returns.
func FuzzBundle(f *testing.F) {
	f.Add(uint64(2), make([]byte, 64))
	f.Add(uint64(3), make([]byte, 130))
	f.Fuzz(func(t *testing.T, n uint64, data []byte) {
		if validCoalesced(n, data) {
			c, err := microproto.NewComposite(microproto.Config{Name: "f", MTU: 1 << 16}, build(t, syncEther, nil)...)
			require.NoError(t, err)
			require.NoError(t, c.Open(0))
			s := c.Endpoint().(*Synchronous)
			require.NoError(t, c.Do(1, func(x *microproto.Exec) {
				m, err := x.NewMessage(microproto.Up)
				require.NoError(t, err)
				s.label.Set(m, n)
				s.tag.Set(m, coalescedTag)
				s.store(x, &assembled{m, contents{length: len(data), data: append([]byte(nil), data...)}})
				x.Done(m)
			}))
			require.Equal(t, n, s.Arrivals())
			var sum uint64
			for i := range s.queues {
				for q := &s.queues[i].messages; q.Len() > 0; q.Drop() {
					sum += cost(len(q.Front().data))
				}
			}
			require.Equal(t, s.stored, sum, "a bundle is worth what its messages are")
		}
		var g coalescingBuffer
		for i := 0; i < len(data) && g.n < maxCoalesced; i += 1 + g.n {
			g.add(uint32(i), n, data[i:min(len(data), i+int(n%8))])
		}
		if g.n > 1 {
			p := g.pack()
			require.True(t, validCoalesced(uint64(g.n), p), fmt.Sprint(g.n))
			require.Len(t, p, coalescedBytes(g.n, g.bytes))
			require.False(t, validCoalesced(uint64(g.n), p[:len(p)-1]))
		}
	})
}
