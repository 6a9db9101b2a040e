package ctp

import (
	"bytes"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

func (r *rig) post(end int, dst []byte) { r.ends[end].Endpoint().(*Synchronous).Post(tag, dst) }

// A message for which the user waits is assembled in the posted memory only.
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

// Memory that is posted again while a message arrives there still receives the whole message.
func TestPostAgain(t *testing.T) {
	const size = 3000
	for after := range 30 {
		r := newRig(t, syncEther, nil, 300, 1, mptest.Faults{Delay: 20 * time.Microsecond, Rate: 3e7}).open()
		dst, data := make([]byte, size), pattern(size, 1)
		r.post(1, dst)
		_, err := r.send(0, tag, 1, data)
		require.NoError(t, err)
		r.run(time.Duration(after) * 10 * time.Microsecond)
		r.post(1, dst)
		r.run(time.Second)
		require.True(t, bytes.Equal(data, dst), "posted again after %d segments", after)
		a, err := r.receive(1, tag, dst, nil)
		require.NoError(t, err)
		require.Equal(t, size, a.Length)
		require.Equal(t, data, dst)
	}
}

// The posted memory is not used for another tag, for a longer or an empty message, or while an
// earlier message of the tag is unread.
func TestMessagesNotForThePostedMemory(t *testing.T) {
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

// Posted memory is not used if a message of the tag is unread already.
func TestPostWithAnUnreadMessage(t *testing.T) {
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

// When the memory is withdrawn at any moment, or the message is received elsewhere, the message
// stays complete, and the memory is not written any more.
func TestWithdraw(t *testing.T) {
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
