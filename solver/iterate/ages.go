package iterate

import "math/bits"

// AgeBounds are the upper bounds of the buckets in which ages of values are counted, in sweeps: 0 and powers of two. Bucket
// i counts the ages up to AgeBounds[i] and above the bound before, and a last one all above.
var AgeBounds = ageBounds()

func ageBounds() (bounds [22]int) {
	for i := range bounds[1:] {
		bounds[i+1] = 1 << i
	}
	return bounds
}

// AgeCounts counts values by age, in the buckets of AgeBounds.
type AgeCounts [len(AgeBounds) + 1]uint64

// AgeBucket returns the index of the bucket of an age.
func AgeBucket(age int) int {
	if age <= 0 {
		return 0
	}
	return min(1+bits.Len(uint(age-1)), len(AgeBounds))
}
