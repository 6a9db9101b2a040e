package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A search finds the longest frame that passes, to searchStep bytes, with at most 3 probes of each size, or 16 where the
// path is congested, whatever else is lost now and then. The longest frame of the link is tried first.
func TestFrameSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(ShortFrame+1, 9000).Draw(t, "most")
		longest := rapid.IntRange(ShortFrame, most).Draw(t, "longest")
		congested, probes := rapid.Bool().Draw(t, "congested"), probesOfSize
		if congested {
			probes = longLost
		}
		lost := rapid.IntRange(0, probes-1).Draw(t, "lost")
		var f frameSearch
		arrived := rapid.Uint64().Draw(t, "arrived")
		f.begin(ShortFrame, most, arrived)
		sizes := []int{}
		for heartbeats := 0; ; heartbeats++ {
			require.Less(t, heartbeats, 20*probes)
			size := f.next(arrived, congested)
			if size == 0 {
				break
			}
			require.Greater(t, size, ShortFrame)
			require.LessOrEqual(t, size, most)
			if len(sizes) == 0 || sizes[len(sizes)-1] != size {
				sizes = append(sizes, size)
			}
			if size <= longest && f.sent > lost {
				arrived++
			}
		}
		require.Equal(t, most, sizes[0])
		require.LessOrEqual(t, f.low, longest)
		require.GreaterOrEqual(t, f.low, longest-searchStep)
		if longest == most {
			require.Equal(t, most, f.low)
		}
		require.Zero(t, f.next(arrived+1, false))
	})
}

// A full queue, counted in bytes, takes only the short frames of a session, while some long frames of another one find
// room. That is no narrow path: the frames keep their length.
func TestFullQueueIsNoNarrowPath(t *testing.T) {
	const length = 8000
	d := letters(9, time.Millisecond, length, 1<<20, nil)
	a, b := d.ends[0], d.ends[1]
	full, others := false, uint64(0)
	d.tap = func(from int, f []byte) bool { return !full || len(f) <= 1280 }
	a.post(pattern(length, 0))
	d.pass(time.Second)
	require.NotNil(t, b.fetch(length))
	full = true
	a.post(pattern(length, 1))
	for range 400 { // another session floods the path, which loses nine tenths
		others += 10
		a.n.peer("b").frames.sent.LongFrames += 10
		b.n.peer("a").frames.received.LongFrames++
		d.pass(10 * time.Millisecond)
		require.Zero(t, a.n.peer("b").frameLimit, "after %d long frames of another session", others)
	}
	full = false
	d.pass(5 * time.Second)
	require.NotNil(t, b.fetch(length))
	require.NoError(t, d.fault)
}

// One direction becomes narrow. The session ends up with the longest frames that pass both ways, and keeps them.
func TestPathShrinksOneWay(t *testing.T) {
	const length = 30000
	d := letters(8, time.Millisecond, length, 1<<20, nil)
	a, b := d.ends[0], d.ends[1]
	narrow := false
	d.tap = func(from int, f []byte) bool { return !narrow || from == 0 || len(f) <= 1280 }
	play := func(span time.Duration) *session {
		for end := d.clock.Now().Add(span); d.clock.Now() < end; {
			for _, e := range d.ends {
				e.post(pattern(length, byte(e.sent[1])))
			}
			d.pass(500 * time.Millisecond)
			for _, e := range d.ends {
				for e.fetch(length) != nil {
					continue
				}
			}
		}
		require.NoError(t, d.fault)
		return a.n.session(a.id)
	}
	play(5 * time.Second)
	narrow = true
	s := play(10 * time.Minute)
	require.LessOrEqual(t, s.channel.frameBytes, 1280)
	require.Greater(t, s.channel.frameBytes, 1280-searchStep)
	changes := s.info.Changes
	play(5 * time.Minute)
	require.Equal(t, changes, s.info.Changes)
	require.Equal(t, s.channel.frameBytes, b.n.session(b.id).channel.frameBytes)
	info, err := a.n.Info(a.id)
	require.NoError(t, err)
	require.Equal(t, s.channel.frameBytes, info.FrameBytes)
}
