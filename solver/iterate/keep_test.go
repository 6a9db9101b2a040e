package iterate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Copies take one part in keepShare of the time, and are not made more often than Every.
func TestKeepClock(t *testing.T) {
	c := KeepClock{Every: time.Second}
	require.False(t, (&KeepClock{}).Due(time.Hour), "no iterates are kept")
	require.False(t, c.Due(time.Second-1))
	require.True(t, c.Due(time.Second))
	c.Begin(2 * time.Second)
	require.False(t, c.Due(time.Hour), "one is being kept")
	c.End(2*time.Second + 100*time.Millisecond)
	next := 2*time.Second + 100*time.Millisecond + keepShare*100*time.Millisecond
	require.False(t, c.Due(next-1))
	require.True(t, c.Due(next))
	c.Begin(next)
	c.End(next + 20*time.Millisecond) // the average is 60 ms
	at := next + 20*time.Millisecond + keepShare*60*time.Millisecond
	require.False(t, c.Due(at-1))
	require.True(t, c.Due(at))
	c.Begin(at)
	for range 5 {
		c.End(at)
	}
	require.False(t, c.Due(at+time.Second-1), "however fast the copies are")
	require.True(t, c.Due(at+keepShare*60*time.Millisecond))
}

type anyState struct {
	a bool
	b int
	c float64
	d Iteration
}

func (s *anyState) Fields(visit func(field any)) {
	visit(&s.a)
	visit(&s.b)
	visit(&s.c)
	visit(&s.d)
}

func TestStateTravels(t *testing.T) {
	want := anyState{true, -5, 0.1, 1 << 40}
	data := EncodeState(&want)
	require.Len(t, data, 25)
	var got anyState
	require.NoError(t, DecodeState(data, &got))
	require.Equal(t, want, got)
	for n := range data {
		require.Error(t, DecodeState(data[:n], &got))
	}
	require.ErrorContains(t, DecodeState(append(data, 0), &got), "a state of 26 bytes")
}

func FuzzDecodeState(f *testing.F) {
	f.Add(EncodeState(&anyState{true, -5, 0.1, 1 << 40}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s anyState
		require.Equal(t, len(data) == 25, DecodeState(data, &s) == nil)
	})
}
