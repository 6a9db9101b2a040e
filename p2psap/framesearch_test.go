package p2psap

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A search finds the longest frame that passes, to searchStep bytes, with at most 3 probes of each size, whatever else
// is lost now and then. The longest frame of the link is tried first.
func TestFrameSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(ShortFrame+1, 9000).Draw(t, "most")
		longest := rapid.IntRange(ShortFrame, most).Draw(t, "longest")
		lost := rapid.IntRange(0, probesOfSize-1).Draw(t, "lost")
		var f frameSearch
		arrived := rapid.Uint64().Draw(t, "arrived")
		f.begin(ShortFrame, most, arrived)
		sizes := []int{}
		for heartbeats := 0; ; heartbeats++ {
			require.Less(t, heartbeats, 60)
			size := f.next(arrived)
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
		require.Zero(t, f.next(arrived+1))
	})
}
