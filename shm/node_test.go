package shm

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// inBoth calls f for both ends at once.
func inBoth[T any](t *testing.T, f func(i int) (T, error)) (out [2]T) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		var err error
		out[1], err = f(1)
		done <- err
	}()
	var err error
	out[0], err = f(0)
	require.NoError(t, err)
	require.NoError(t, <-done)
	return out
}

// connectedNodes returns two nodes with links of this process, which carry frames of so many bytes, beside UDP on loopback.
func connectedNodes(t *testing.T, frameBytes int) (nodes [2]*driver.Node, links [2]*Link) {
	memory := NewMemory()
	for i := range nodes {
		base, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		links[i], err = Open(Config{Name: fmt.Sprint(i), Memory: memory, FrameBytes: frameBytes})
		require.NoError(t, err)
		nodes[i], err = driver.New(driver.Config{
			Name: fmt.Sprint(i), Plain: true,
			Rails:  []driver.Rail{{Link: base}, {Network: p2psap.Memory, Link: links[i]}},
			Listen: "127.0.0.1:0", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "test",
			Linger: 100 * time.Millisecond,
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, nodes[i].Close()) })
	}
	inBoth(t, func(i int) (struct{}, error) {
		return struct{}{}, nodes[i].Connect(await.Context(t), fmt.Sprint(1-i), nodes[1-i].ControlAddr().String())
	})
	return nodes, links
}

// A message in reserved memory is copied by neither end: what the receiver views is what the sender has packed. So a halo is
// copied twice in all, when it is packed and when it is unpacked. The memory is used again once the messages are read.
func TestNothingIsCopied(t *testing.T) {
	const size, messages = 128 << 10, 50
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		t.Run(mode.String(), func(t *testing.T) {
			nodes, links := connectedNodes(t, size+512)
			ctx := await.Context(t)
			sockets := inBoth(t, func(i int) (*driver.Socket, error) {
				return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{
					Name: "halo", Mode: mode, Slots: []p2psap.SlotSpec{{Tag: 1, Length: size}},
				})
			})
			require.Equal(t, p2psap.Memory, sockets[0].Info().Conditions.Network)
			var v p2psap.View
			for k := range uint64(messages) {
				face := sockets[0].Reserve(1, size)
				require.Len(t, face, size)
				copy(face, pattern(k, size))
				_, err := sockets[0].Send(ctx, 1, p2psap.Label(k), face)
				require.NoError(t, err)
				a, err := sockets[1].ReceiveView(ctx, 1, &v)
				for err == nil && !a.Fresh { // asynchronous
					_, err = sockets[1].Wait(ctx, 0)
					require.NoError(t, err)
					a, err = sockets[1].ReceiveView(ctx, 1, &v)
				}
				require.NoError(t, err)
				require.Equal(t, k, a.Label)
				require.Len(t, v.Pieces, 1)
				require.True(t, bytes.Equal(pattern(k, size), v.Pieces[0]))
				require.Same(t, &face[0], &v.Pieces[0][0], "%d %d", k, links[0].Stats().InPlace)
			}
			v.Release()
			require.EqualValues(t, messages, links[0].Stats().InPlace)
			if mode == microproto.ModeSynchronous {
				require.Zero(t, testing.AllocsPerRun(20, func() {
					face := sockets[0].Reserve(1, size)
					_, err := sockets[0].Send(ctx, 1, 1, face)
					_, failed := sockets[1].ReceiveView(ctx, 1, &v)
					if err != nil || failed != nil {
						t.Fatal(err, failed)
					}
				}))
			}
			require.Nil(t, sockets[0].Reserve(1, 2*size), "longer than a frame")
			require.Nil(t, sockets[0].Reserve(2, size), "no such tag")
			require.NotNil(t, sockets[0].Reserve(1, size))
			require.NoError(t, sockets[0].Close())
			require.Nil(t, sockets[0].Reserve(1, size), "closed")
			await.Until(t, func() bool {
				defer links[0].lockAll()()
				w := &links[0].peers[0].lane
				return w.reserved == 0 && !slotsReserved(&links[0].peers[0].slots)
			}, "everything that was reserved to be given back")
		})
	}
}

func slotsReserved(s *slotWriter) bool {
	for i := range s.slots {
		if s.slots[i].reserved {
			return true
		}
	}
	return false
}

// A message in reserved memory that was not accepted when its connection failed is sent again over another network.
func TestReservedMessagesMove(t *testing.T) {
	const size, messages = 32 << 10, 4
	nodes, links := connectedNodes(t, 0)
	ctx := await.Context(t)
	sockets := inBoth(t, func(i int) (*driver.Socket, error) {
		return nodes[i].Open(ctx, fmt.Sprint(1-i), p2psap.OpenOptions{
			Name: "halo", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: size}},
		})
	})
	links[1].rx.Lock() // it receives nothing
	for k := range uint64(messages) {
		face := sockets[0].Reserve(1, size)
		require.Len(t, face, size)
		copy(face, pattern(k, size))
		_, err := sockets[0].Send(ctx, 1, p2psap.Label(k), face)
		require.NoError(t, err)
	}
	func() {
		defer links[0].lockAll()()
		links[0].fail(links[0].peers[0], errGone)
	}()
	links[1].rx.Unlock()
	for k := range uint64(messages) {
		slot := p2psap.Slot{Tag: 1, Data: make([]byte, size)}
		a, err := sockets[1].Receive(ctx, &slot)
		require.NoError(t, err)
		require.Equal(t, k, a.Label)
		require.Equal(t, pattern(k, size), slot.Data)
	}
}
