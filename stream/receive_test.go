//go:build linux

package stream

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// However the connection cuts the bytes into pieces, the frames arrive intact and in order, small ones and ones that
// stay in the buffer that they were received in.
func TestFramesOfAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := Open(Config{Name: "l", Listen: "127.0.0.1"})
		require.NoError(t, err)
		defer l.Close()
		f := meet(t, l)
		defer f.Close()
		all := []int{1, 100, shareBytes - 1, shareBytes, 40_000, DefaultFrameBytes}
		all = all[:rapid.IntRange(1, len(all)).Draw(t, "largest")]
		sizes := rapid.SliceOfN(rapid.SampledFrom(all), 1, 90)
		var want [][]byte
		for i, n := range sizes.Draw(t, "sizes") {
			want = append(want, bytes.Repeat([]byte{byte(i + 1)}, n))
		}
		done := make(chan error, 1)
		pieces := rapid.SliceOfN(rapid.SampledFrom([]int{1, 3, 5, 1000, 30_000, 100_000, 1 << 20}), 1, 8).Draw(t, "pieces")
		go func() {
			all := encode(want)
			for i := 0; len(all) > 0; i++ {
				n := min(pieces[i%len(pieces)]+i, len(all))
				if _, err := f.Write(all[:n]); err != nil {
					done <- err
					return
				}
				all = all[n:]
			}
			done <- nil
		}()
		if rapid.Bool().Draw(t, "late") && len(encode(want)) < 1<<20 { // the kernel keeps that much: buffers are filled
			require.NoError(t, <-done)
			done <- nil
		}
		var held []microproto.Frame // a few stay in use, so that buffers do
		batch := make([]microproto.Frame, rapid.IntRange(1, 5).Draw(t, "batch"))
		for i := 0; i < len(want); {
			n, err := l.Recv(batch)
			require.NoError(t, err)
			for k := range n {
				require.Equal(t, f.addr, batch[k].Peer)
				require.True(t, bytes.Equal(want[i], batch[k].Data), "frame %d", i)
				held = append(held, batch[k])
				i++
			}
		}
		require.NoError(t, <-done)
		for i := range held {
			require.True(t, bytes.Equal(want[i], held[i].Data), "frame %d was overwritten while in use", i)
			held[i].Release()
		}
	})
}

// A length that no frame has takes the connection down, and nothing of it is returned.
func TestInvalidLengths(t *testing.T) {
	for name, length := range map[string]uint32{"zero": 0, "too long": DefaultFrameBytes + 1, "largest": 1<<32 - 1} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Config{Name: "l"})
			down := events(l)
			f := meet(t, l)
			_, err := f.Write(binary.BigEndian.AppendUint32(encode([][]byte{[]byte("good")}), length))
			require.NoError(t, err)
			require.Equal(t, [][]byte{[]byte("good")}, receiveUntilDown(t, l, down, f.addr))
			require.EqualValues(t, 1, l.Stats().Failures)
		})
	}
}

// A receiver that sleeps finds a length that no frame has, and sleeps on.
func TestInvalidLengthWhileAsleep(t *testing.T) {
	l := open(t, Config{Name: "l"})
	down := events(l)
	f := meet(t, l)
	over := make(chan error, 1)
	go func() {
		_, err := l.Recv(make([]microproto.Frame, 1))
		over <- err
	}()
	await.Until(t, func() bool { return l.waits.Waiters() > 0 }, "Recv to sleep")
	_, err := f.Write(binary.BigEndian.AppendUint32(nil, DefaultFrameBytes+1))
	require.NoError(t, err)
	require.ErrorContains(t, (<-down).Err, "invalid length")
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-over, net.ErrClosed)
}

// fillBuffer writes a part of frames. It returns once the link has received all of it and returned the frames that
// are whole. left is how many bytes of earlier parts were not returned.
func fillBuffer(t *testing.T, l *Link, f foreign, part []byte, left int, batch []microproto.Frame) (n int) {
	t.Helper()
	_, err := f.Write(part)
	require.NoError(t, err)
	left += len(part)
	await.Until(t, func() bool {
		k, err := l.TryRecv(batch[n:])
		require.NoError(t, err)
		for i := range k {
			left -= prefixBytes + batch[n+i].Bytes()
		}
		n += k
		l.rx.Lock()
		defer l.rx.Unlock()
		in := &l.active[0].incoming
		return in.to-in.from == left
	}, "%d bytes", len(part))
	return n
}

// A frame whose beginning is found at the end of a buffer, before its length is known, wakes a receiver that sleeps
// there: the poller reports its bytes once, and they are read to the end.
func TestFrameAcrossBuffersWhileAsleep(t *testing.T) {
	l := open(t, Config{Name: "l"})
	f := meet(t, l)
	frames := make([][]byte, 4)
	for i := range frames {
		frames[i] = bytes.Repeat([]byte{byte(i + 1)}, 50_000)
	}
	all := encode(frames)
	cut := 3*(prefixBytes+50_000) + 2
	room := l.config.bufferBytes() - cut
	require.Greater(t, room, tailBytes)
	require.Less(t, room, 50_000)
	batch := make([]microproto.Frame, 4)
	require.Equal(t, 3, fillBuffer(t, l, f, all[:cut], 0, batch))
	over := make(chan int, 1)
	go func() {
		n, _ := l.Recv(batch[3:])
		over <- n
	}()
	await.Until(t, func() bool { return l.waits.Waiters() > 0 }, "Recv to sleep")
	_, err := f.Write(all[cut:])
	require.NoError(t, err)
	require.Equal(t, 1, <-over)
	for i := range batch {
		require.True(t, bytes.Equal(frames[i], batch[i].Data), "frame %d", i)
		batch[i].Release()
	}
}

// Frames of the largest size follow one another in a buffer, and none is moved to another one, wherever a system call
// ends.
func TestLargestFramesAreNotMoved(t *testing.T) {
	want := bytes.Repeat([]byte("x"), DefaultFrameBytes)
	all := encode([][]byte{want, want, want, want})
	for _, cut := range []int{2, 100, DefaultFrameBytes / 2, DefaultFrameBytes} { // of the last frame of a buffer
		l := open(t, Config{Name: "l"})
		f := meet(t, l)
		before := l.config.bufferBytes() - prefixBytes - DefaultFrameBytes
		batch := make([]microproto.Frame, 4)
		n := fillBuffer(t, l, f, all[:before+cut], 0, batch)
		n += fillBuffer(t, l, f, all[before+cut:], cut, batch[n:])
		require.Equal(t, len(batch), n)
		for i := range batch {
			require.True(t, bytes.Equal(want, batch[i].Data), "frame %d", i)
			batch[i].Release()
		}
		require.Zero(t, l.Stats().Moved, "cut at %d", cut)
	}
}
