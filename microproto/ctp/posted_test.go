package ctp

import (
	"bytes"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

func (r *rig) post(end int, dst []byte) { r.ends[end].Endpoint().(*Synchronous).Post(tag, dst) }

// A message that is waited for is put together where it is wanted, and nowhere else.
func TestPostedMessage(t *testing.T) {
	const size = 5000
	r := newTrainRig(t, syncEther, nil, 500, trainBytes, 1, calm).open()
	dst, data := make([]byte, size+100), pattern(size, 1)
	r.post(1, dst)
	_, err := r.send(0, tag, 1, data)
	require.NoError(t, err)
	r.run(time.Second)
	require.Equal(t, data, dst[:size], "it is there before Receive")
	_, err = r.send(0, tag, 2, pattern(size, 2))
	require.NoError(t, err)
	r.run(time.Second)
	require.Equal(t, data, dst[:size], "the next one is put elsewhere")
	a, err := r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	require.Equal(t, size, a.Length)
	require.Equal(t, data, dst[:size])
	a, err = r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Label)
	require.Equal(t, pattern(size, 2), dst[:size])
	require.NoError(t, r.Pair.Close())
}

// What is not for the place does not go there: another tag, a longer message, an empty
// one, and one of whose tag an earlier one waits.
func TestNotForThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		tag  uint32
		size int
	}{"another tag": {tag + 1, 100}, "longer": {tag, 201}, "empty": {tag, 0}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, syncEther, nil, 150, 1, calm).open()
			dst := bytes.Repeat([]byte{7}, 200)
			r.post(1, dst)
			_, err := r.send(0, c.tag, 1, pattern(c.size, 1))
			require.NoError(t, err)
			r.run(time.Second)
			require.Equal(t, bytes.Repeat([]byte{7}, 200), dst)
			got := make([]byte, 300)
			a, err := r.receive(1, c.tag, got, nil)
			require.NoError(t, err)
			require.Equal(t, pattern(c.size, 1), got[:a.Length])
		})
	}
}

// A place for a tag of which a message is there already is not used.
func TestPlaceBehindAMessage(t *testing.T) {
	r := newRig(t, syncEther, nil, 150, 1, calm).open()
	dst := bytes.Repeat([]byte{7}, 200)
	for k := range uint64(2) {
		_, err := r.send(0, tag, k, pattern(200, k))
		require.NoError(t, err)
		r.run(time.Second)
		r.post(1, dst)
	}
	require.Equal(t, bytes.Repeat([]byte{7}, 200), dst)
	for k := range uint64(2) {
		a, err := r.receive(1, tag, dst, nil)
		require.NoError(t, err)
		require.Equal(t, k, a.Label)
		require.Equal(t, pattern(200, k), dst)
	}
}

// Taken back at any moment, or received elsewhere, the message stays whole, and the
// place is the user's again.
func TestWithdrawnPlace(t *testing.T) {
	const size = 3000
	partly := 0
	for after := range 30 {
		// A segment takes 10 µs.
		r := newRig(t, syncEther, nil, 300, 1, mptest.Faults{Delay: 20 * time.Microsecond, Rate: 3e7}).open()
		free, dst := bytes.Repeat([]byte{9}, size), bytes.Repeat([]byte{9}, size)
		r.post(1, dst)
		_, err := r.send(0, tag, 1, pattern(size, 1))
		require.NoError(t, err)
		r.run(time.Duration(after) * 7 * time.Microsecond)
		if dst[0] != 9 && dst[size-1] == 9 {
			partly++
		}
		r.ends[1].Endpoint().(*Synchronous).Withdraw()
		copy(dst, free)
		r.run(time.Second)
		require.Equal(t, free, dst, "after %d", after)
		got := make([]byte, size)
		a, err := r.receive(1, tag, got, nil)
		require.NoError(t, err)
		require.Equal(t, size, a.Length)
		require.Equal(t, pattern(size, 1), got)
		require.NoError(t, r.Pair.Close())
	}
	require.Greater(t, partly, 5, "a part was there")
}
