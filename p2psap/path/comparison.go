package path

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// CompareMargin is the part of the base rail's time that another rail may take to be chosen. Repeated measurements of
// one rail differ by less than the rest, and a smaller gain is not worth another protocol.
const CompareMargin = 0.9

// Comparison is what was measured of a rail beside the base rail.
type Comparison struct {
	Bytes      int           // of each message
	Base, Rail time.Duration // shortest one way times; both 0: too few were measured
	Faster     bool          // the rail is worth its use
	Failed     bool          // messages did not pass
}

// minTimes is the number of times of each rail that a Comparison needs.
const minTimes = 3

// Compare compares one way times of messages of a length, which were measured in turn over the base rail and over
// another. A process may be scheduled late on a busy host, so both the shortest and the median times of the other rail
// have to be shorter, and the shortest by the margin.
func Compare(bytes int, base, rail []time.Duration) Comparison {
	c := Comparison{Bytes: bytes}
	if min(len(base), len(rail)) < minTimes {
		return c
	}
	base, rail = slices.Sorted(slices.Values(base)), slices.Sorted(slices.Values(rail))
	c.Base, c.Rail = base[0], rail[0]
	c.Faster = float64(c.Rail) <= CompareMargin*float64(c.Base) && rail[len(rail)/2] < base[len(base)/2]
	return c
}

// Describe returns the comparison of two networks as a text.
func (c *Comparison) Describe(base, rail Network) string {
	if c.Failed {
		return fmt.Sprintf("%v was not compared with %v: messages did not pass in time, which a firewall may cause", rail, base)
	}
	if c.Base == 0 || c.Rail == 0 {
		return fmt.Sprintf("%v was not compared with %v: the path is too slow to show a difference, or the machines too busy",
			rail, base)
	}
	verdict := cmp.Or(map[bool]string{true: "is faster"}[c.Faster], "is not faster by a tenth")
	return fmt.Sprintf("%v %s than %v here: %d KiB one way in %.3g µs, %v %.3g", rail, verdict, base, c.Bytes>>10,
		micro(c.Rail), base, micro(c.Base))
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
