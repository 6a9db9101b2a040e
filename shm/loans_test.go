package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// The blocks are lent, then frames are copied. Beyond the bound of memory they stay in the lane, and the receiver
// continues when frames are released.
func TestBoundedMemory(t *testing.T) {
	const frameBytes = 32 << 10
	a := kinds()["shared memory"]()(t, Config{Name: "a", FrameBytes: frameBytes})
	b := kinds()["shared memory"]()(t, Config{Name: "b", FrameBytes: frameBytes, BufferBytes: 4 * frameBytes})
	toB, _ := join(t, a, b)
	for range maxBlocks + 8 {
		sendOne(t, a, frame(toB, make([]byte, frameBytes)))
	}
	var kept []microproto.Frame
	batch := make([]microproto.Frame, 64)
	n := 0
	for more := -1; more != 0; n += more {
		var err error
		more, err = b.TryRecv(batch[n:])
		require.NoError(t, err)
	}
	require.Equal(t, maxBlocks+4, n)
	kept = append(kept, batch[:n]...)
	done := make(chan int)
	go func() {
		n, _ := b.AwaitRecv(batch)
		done <- n
	}()
	await.Until(t, func() bool { return b.Stats().Waits > 0 }, "the receiver to wait for memory")
	kept[n-1].Release() // a copy
	require.Equal(t, 1, <-done)
}

// Frames that are kept hold up no others, however many pass: a user may read one session long after another.
func TestKeptFramesHoldUpNothing(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			var kept []microproto.Frame
			batch := make([]microproto.Frame, 1)
			for i := range uint64(300) {
				sendOne(t, a, frame(toB, pattern(i, []int{32 << 10, 100}[i%2])))
				n, err := b.TryRecv(batch)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				v, whole := versionOf(batch[0].Data)
				require.True(t, whole)
				require.Equal(t, i, v)
				if i%10 == 0 && len(kept) < maxBlocks {
					kept = append(kept, batch[0])
				} else {
					batch[0].Release()
				}
			}
			for i, f := range kept {
				v, whole := versionOf(f.Data)
				require.True(t, whole)
				require.EqualValues(t, 10*i, v)
				f.Release()
			}
			sendOne(t, a, frame(toB, make([]byte, 32<<10)))
			n, err := b.TryRecv(batch)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.EqualValues(t, 1, b.named["a"].loans.inBlock, "the first block is used again")
			batch[0].Release()
		})
	}
}

// A frame in a block that was not given back takes the connection down.
func TestBlockWrittenTwice(t *testing.T) {
	l := loans{out: alignedBytes(wordsEnd), returned: func() {}}
	b, err := l.lendBlock(make([]byte, 4096), 3)
	require.NoError(t, err)
	_, err = l.lendBlock(make([]byte, 4096), 3)
	require.ErrorIs(t, err, errRecord)
	require.Zero(t, word(l.out, returnedAt).Load())
	f := b.Frame(1, 0, 4096)
	f.Release()
	require.EqualValues(t, 1<<3, word(l.out, returnedAt).Load())
}

// Values that are lent stay as they are while newer ones are written. While there are heldPerSlot of them, no more are
// received; when one is released, the newest is, by a receiver that waits.
func TestLentValue(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			batch := make([]microproto.Frame, 4)
			var kept []microproto.Frame
			for v := uint64(1); v <= 10; v++ {
				sendOne(t, a, value(toB, 1, pattern(v, 4096)))
				n, err := b.TryRecv(batch)
				require.NoError(t, err)
				if v > heldPerSlot {
					require.Zero(t, n)
					continue
				}
				require.Equal(t, 1, n)
				kept = append(kept, batch[0])
			}
			waits, received := b.Stats().Waits, make(chan microproto.Frame)
			go func() {
				for n := 0; n == 0; {
					n, _ = b.AwaitRecv(batch)
				}
				received <- batch[0]
			}()
			await.Until(t, func() bool { return b.Stats().Waits > waits }, "the receiver to wait")
			kept = append(kept, microproto.Frame{})
			for i := range heldPerSlot {
				v, whole := versionOf(kept[i].Data)
				require.True(t, whole)
				require.EqualValues(t, 1+i, v)
				if i == 0 {
					kept[i].Release()
					kept[heldPerSlot] = <-received
				}
			}
			v, whole := versionOf(kept[heldPerSlot].Data)
			require.True(t, whole)
			require.EqualValues(t, 10, v)
			for i := range kept {
				kept[i].Release()
			}
		})
	}
}

// Frames that are lent are valid after Close. Their memory is freed when the last is released.
func TestLentFramesOutliveTheLink(t *testing.T) {
	_, mappings := descriptorsAndMappings(t)
	open := kinds()["shared memory"]()
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	toB, _ := join(t, a, b)
	sendOne(t, a, frame(toB, pattern(7, 8192)))
	sendOne(t, a, value(toB, 1, pattern(8, 8192)))
	batch := make([]microproto.Frame, 4)
	n, err := b.TryRecv(batch)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	for i, want := range []uint64{7, 8} {
		v, whole := versionOf(batch[i].Data)
		require.True(t, whole)
		require.Equal(t, want, v)
		_, m := descriptorsAndMappings(t)
		require.Greater(t, m, mappings)
		batch[i].Release()
	}
	_, m := descriptorsAndMappings(t)
	require.LessOrEqual(t, m, mappings)
}
