package iterate

import "math/bits"

// Ages of values are counted in buckets, in sweeps: bucket 0 counts age 0, bucket i the ages up to 2^(i−1) and above the bound
// of the bucket before, and the last one all above.

// AgeBounds is the number of buckets with a bound.
const AgeBounds = 22

// AgeCounts counts values by age.
type AgeCounts [AgeBounds + 1]uint64

// AgeBound returns the largest age of bucket i.
func AgeBound(i int) int { return 1 << i >> 1 }

// AgeBucket returns the index of the bucket of an age.
func AgeBucket(age int) int {
	if age <= 0 {
		return 0
	}
	return min(1+bits.Len(uint(age-1)), AgeBounds)
}
