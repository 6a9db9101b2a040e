package published

import (
	"errors"
	"fmt"
	"math"
)

// Sample has the relative number of additional sweeps of an asynchronous run on a coarse grid, compared
// with a synchronous one.
type Sample struct {
	Side int
	More float64
}

// MoreAt extrapolates the additional sweeps on two grids to a grid of side points a side, if
// relaxation and communication take as long on all grids. A value that is d sweeps old slows down only
// the points beside a face, whose share of the block falls as 1/n: more(n) = a/n + b/n², exact for both
// samples. The sides must be positive and those of the samples different.
func MoreAt(side int, s, t Sample) (float64, error) {
	if side < 1 || s.Side < 1 || t.Side < 1 || s.Side == t.Side {
		return 0, fmt.Errorf("published: more sweeps at %d points a side from samples at %d and %d: "+
			"want three positive numbers, the last two different", side, s.Side, t.Side)
	}
	if math.IsNaN(s.More+t.More) || math.IsInf(s.More+t.More, 0) {
		return 0, errors.New("published: the additional sweeps of a sample are not finite")
	}
	// Divided differences of n·more(n) = a + b/n in 1/n.
	n, x, y := float64(side), 1/float64(s.Side), 1/float64(t.Side)
	fs, ft := s.More*float64(s.Side), t.More*float64(t.Side)
	b := (fs - ft) / (x - y)
	a := fs - b*x
	return (a + b/n) / n, nil
}
