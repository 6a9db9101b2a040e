package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

const headerBytes = 40

// inReserved returns a frame whose body lies in memory reserved for it, and that memory.
func inReserved(t *testing.T, l *Link, to microproto.LinkAddr, m microproto.Mode, id, version uint64) (
	microproto.Frame, []byte,
) {
	b := l.Reserve(to, m, id, headerBytes, 1<<15)
	require.Len(t, b, 1<<15)
	copy(b, pattern(version, len(b)))
	f := frame(to, pattern(version, headerBytes))
	f.Mode, f.Value, f.Body, f.Header = m, id, b, headerBytes
	return f, b
}

// A frame in reserved memory is sent as it lies there, and arrives whole, in both modes. While the memory is reserved
// nothing else is written to it.
func TestReserve(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			batch := make([]microproto.Frame, 4)
			receive := func(want uint64) {
				n, err := b.TryRecv(batch)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				v, whole := versionOf(batch[0].Data)
				require.True(t, whole)
				require.Equal(t, want, v)
				batch[0].Release()
			}
			for i, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
				id := uint64(i)
				for v := range uint64(100) {
					f, memory := inReserved(t, a, toB, m, id, v)
					sendOne(t, a, f)
					receive(v)
					g := frame(toB, pattern(v+1000, 1<<15))
					g.Mode, g.Value = m, id
					sendOne(t, a, g)
					receive(v + 1000)
					kept, whole := versionOf(memory)
					require.True(t, whole)
					require.Equal(t, v, kept)
					a.Unreserve(memory)
				}
			}
			require.EqualValues(t, 200, a.Stats().InPlace)
			f, memory := inReserved(t, a, toB, microproto.ModeAsynchronous, 1, 5)
			for v := range uint64(2 * buffersPerSlot) { // frames that were queued before it
				sendOne(t, a, value(toB, 1, pattern(v, 1<<15)))
				receive(v)
			}
			sendOne(t, a, f)
			receive(5)
			a.Unreserve(memory)
			require.EqualValues(t, 201, a.Stats().InPlace)
			require.Nil(t, a.Reserve(toB, microproto.ModeSynchronous, 0, headerBytes, 100), "a copy is faster")
			require.Nil(t, a.Reserve(toB, microproto.ModeSynchronous, 0, headerBytes, DefaultFrameBytes), "too long")
			require.Nil(t, a.Reserve(toB, microproto.ModeAsynchronous, 1, headerBytes, DefaultFrameBytes), "too long")
			require.Nil(t, a.Reserve(toB, microproto.ModeAsynchronous, 0, headerBytes, 4096), "not a value")
			require.Nil(t, a.Reserve(toB+1, microproto.ModeSynchronous, 0, headerBytes, 4096), "no such peer")
			var all [][]byte
			for m := a.Reserve(toB, 1, 0, headerBytes, 4096); m != nil; m = a.Reserve(toB, 1, 0, headerBytes, 4096) {
				all = append(all, m)
			}
			require.Len(t, all, maxBlocks)
			sendOne(t, a, frame(toB, pattern(9, 4096))) // in the lane
			receive(9)
			for _, m := range all {
				a.Unreserve(m)
			}
		})
	}
}

// Reserved memory stays valid when its connection fails, and when the link is closed. It is freed when the last piece is
// given back.
func TestReservedMemoryOutlivesItsConnection(t *testing.T) {
	_, mappings := descriptorsAndMappings(t)
	open := kinds()["shared memory"]()
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	toB, _ := join(t, a, b)
	early := a.Reserve(toB, microproto.ModeSynchronous, 0, headerBytes, 4096)
	f, sent := inReserved(t, a, toB, microproto.ModeSynchronous, 0, 7)
	sendOne(t, a, f)
	_, unsent := inReserved(t, a, toB, microproto.ModeAsynchronous, 1, 8)
	require.NoError(t, b.Close())
	await.Until(t, func() bool { s, _ := a.stateOf(toB); return s == peerDown }, "the end to be noticed")
	a.Unreserve(early)
	require.NoError(t, a.Close())
	for i, m := range [][]byte{sent, unsent} {
		v, whole := versionOf(m)
		require.True(t, whole)
		require.EqualValues(t, 7+i, v)
		_, n := descriptorsAndMappings(t)
		require.Greater(t, n, mappings)
		a.Unreserve(m)
	}
	_, n := descriptorsAndMappings(t)
	require.LessOrEqual(t, n, mappings)
	require.Nil(t, a.Reserve(toB, microproto.ModeSynchronous, 0, headerBytes, 4096), "the link is closed")
}
