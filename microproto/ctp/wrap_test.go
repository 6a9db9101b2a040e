package ctp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// RFC 1982 with 32 bits.
func TestBefore(t *testing.T) {
	const top = math.MaxUint32
	for _, c := range []struct {
		a, b uint32
		want bool
	}{
		{0, 0, false}, {0, 1, true}, {1, 0, false},
		{top, 0, true}, {0, top, false}, {top - 5, 5, true}, {5, top - 5, false},
		{0, 1<<31 - 1, true}, {1<<31 - 1, 0, false}, {1 << 31, 1<<32 - 1, true},
	} {
		require.Equal(t, c.want, before(c.a, c.b), "%d before %d", c.a, c.b)
	}
}

// The segments outstanding at a time-out are sent again in a few round trips even if the numbers
// wrap, and no valid acknowledgement is refused there.
func TestRecoveryWhereNumbersWrap(t *testing.T) {
	for _, first := range []uint32{1, math.MaxUint32 - 3, math.MaxUint32 - 40} {
		o := microproto.Options{OptionFirst: int64(first)}
		r := newRig(t, syncEther, o, 1050, 1, calm).open()
		r.Link.Partition(0, true)
		_, err := r.send(0, tag, 1, pattern(60_000, 1)) // 60 segments
		require.NoError(t, err)
		r.run(50 * time.Millisecond)
		r.Link.Partition(0, false)
		// The initial time-out is 100 ms, and 2, 4, 8, 16, 32 segments follow.
		ok, err := r.RunUntil(53*time.Millisecond, func() bool { return r.accepted(0) == 1 })
		require.NoError(t, err)
		require.True(t, ok, "first number %d", first)
		require.Zero(t, r.drops(0, "acknowledgement of a segment not sent"))
	}
}

// The first acknowledgement may be beyond 2³¹: no time-out has left segments then, whatever the
// first number.
func TestFirstAcknowledgementBeyondHalfTheNumbers(t *testing.T) {
	o := microproto.Options{OptionFirst: 1<<31 - 5}
	r := newRig(t, syncInter, o, 1050, 1, calm).open()
	r.Link.Partition(1, true)
	_, err := r.send(0, tag, 1, pattern(20_000, 1))
	require.NoError(t, err)
	r.run(50 * time.Millisecond)
	r.Link.Partition(1, false)
	e := r.ends[0].Protocol("Retransmit").(*Retransmit)
	require.Equal(t, e.una, e.nextRetry)
	r.run(time.Second)
	require.EqualValues(t, 1, r.accepted(0))
	require.False(t, before(e.nextRetry, e.una))
}

// The end of the last recovery moves with the numbers, so that it never seems to be ahead after
// 2³¹ segments without a time-out.
func TestLastRecoveryIsForgotten(t *testing.T) {
	for _, names := range [][]string{syncEther, syncInter} {
		r := newRig(t, names, nil, 1050, 1, calm).open()
		e := r.ends[0].Protocol("Retransmit").(*Retransmit)
		e.recover = e.una - (1<<31 - 5)
		_, err := r.send(0, tag, 1, []byte("x"))
		require.NoError(t, err)
		r.run(time.Second)
		require.EqualValues(t, 1, r.accepted(0))
		require.Equal(t, e.una, e.recover)
		require.Equal(t, e.una, e.nextRetry)
	}
}
