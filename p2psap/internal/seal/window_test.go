package seal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWindow(t *testing.T) {
	var w window
	take := func(n uint64) bool {
		fresh, _ := w.fresh(n)
		if fresh {
			w.accept(n)
		}
		return fresh
	}
	require.GreaterOrEqual(t, WindowFrames, 2048)
	require.True(t, take(0))
	require.False(t, take(0))
	require.True(t, take(WindowFrames))
	require.True(t, take(1), "the oldest that the window reaches")
	require.False(t, take(1))
	require.True(t, take(WindowFrames+1))
	fresh, old := w.fresh(1)
	require.False(t, fresh)
	require.True(t, old)
	require.False(t, take(WindowFrames))
}

// The window agrees with a set of all numbers, as far as it reaches.
func TestWindowAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		seen := map[uint64]bool{}
		next := uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "frames") {
			n := next
			switch rapid.IntRange(0, 9).Draw(t, "way") {
			case 0: // a gap
				n += rapid.Uint64Range(0, 3*WindowFrames).Draw(t, "gap")
			case 1: // far ahead
				n += rapid.Uint64Range(0, 1<<40).Draw(t, "far")
			case 2, 3, 4, 5: // late or doubled
				n -= min(n, rapid.Uint64Range(1, WindowFrames+200).Draw(t, "behind"))
			}
			fresh, old := w.fresh(n)
			wantOld := n < next && next-n > WindowFrames
			require.Equal(t, wantOld, old, "number %d before %d", n, next)
			require.Equal(t, !wantOld && !seen[n], fresh, "number %d before %d", n, next)
			if fresh {
				w.accept(n)
				seen[n] = true
				next = max(next, n+1)
			}
		}
	})
}
