package iterate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ages are counted by the first bound that they do not exceed.
func TestAgeBuckets(t *testing.T) {
	for age, bucket := range map[int]int{
		-1: 0, 0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 64: 7, 65: 8, 1 << 20: 21, 1<<20 + 1: 22, math.MaxInt: 22,
	} {
		require.Equal(t, bucket, AgeBucket(age), age)
		require.True(t, bucket == AgeBounds || age <= AgeBound(bucket), age)
		require.True(t, bucket == 0 || age > AgeBound(bucket-1), age)
	}
}
