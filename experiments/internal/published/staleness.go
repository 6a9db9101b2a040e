package published

import (
	"errors"
	"fmt"
	"math"
)

// Sample is what an asynchronous run on a coarse grid found: how many more sweeps it needs than a
// synchronous one, relative.
type Sample struct {
	Side int
	More float64
}

// MoreAt is what runs on two grids say of a grid of side points a side, when relaxation and
// communication take as long in all of them. A value read d sweeps too old holds up the points
// beside a face and no others, and they are a part of the block that falls as 1/n:
// more(n) = a/n + b/n², exact for both samples. Samples of one side, or sides that are not positive, are
// an error.
func MoreAt(side int, s, t Sample) (float64, error) {
	if side < 1 || s.Side < 1 || t.Side < 1 || s.Side == t.Side {
		return 0, fmt.Errorf("published: more sweeps at %d points a side from samples at %d and %d: "+
			"want three positive numbers, the last two different", side, s.Side, t.Side)
	}
	if math.IsNaN(s.More+t.More) || math.IsInf(s.More+t.More, 0) {
		return 0, errors.New("published: a sample of how many more sweeps there were is not a number")
	}
	// Divided differences of n·more(n) = a + b/n in 1/n.
	n, x, y := float64(side), 1/float64(s.Side), 1/float64(t.Side)
	fs, ft := s.More*float64(s.Side), t.More*float64(t.Side)
	b := (fs - ft) / (x - y)
	a := fs - b*x
	return (a + b/n) / n, nil
}
