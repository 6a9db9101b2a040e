package calibration

import (
	"errors"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/internal/cluster"
)

// quiet is what something takes when nothing else is going on: the lower quartile, since
// whatever disturbs a measurement makes it longer. values is sorted.
func quiet(values []float64) float64 {
	slices.Sort(values)
	return stat.Quantile(0.25, stat.Empirical, values, nil)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return stat.Quantile(0.5, stat.Empirical, values, nil)
}

// Costs are the costs whose sums come closest to what exchanges took, relatively, in the sense
// of least squares; none is negative.
func Costs(of []Exchange) (send, receive cluster.Cost, err error) {
	if len(of) < 4 {
		return send, receive, errors.New("costs of three kinds are not known from fewer than four exchanges")
	}
	if send, err = cost(of, func(e *Exchange) time.Duration { return e.Send }); err != nil {
		return send, receive, err
	}
	receive, err = cost(of, func(e *Exchange) time.Duration { return e.Receive })
	return send, receive, err
}

// cost fits message + segments·segment + bytes·byte. Where a cost comes out below zero the
// one that is most so is left out and the others are fitted again.
func cost(of []Exchange, took func(e *Exchange) time.Duration) (cluster.Cost, error) {
	in := []int{0, 1, 2}
	for len(in) > 0 {
		a, b := mat.NewDense(len(of), len(in), nil), mat.NewVecDense(len(of), nil)
		for i := range of {
			e := &of[i]
			weight := 1 / float64(max(1, took(e)))
			row := [3]float64{weight, float64(e.Segments) * weight, float64(e.Bytes) * weight}
			for j, k := range in {
				a.Set(i, j, row[k])
			}
			b.SetVec(i, float64(took(e))*weight)
		}
		var x mat.VecDense
		if err := x.SolveVec(a, b); err != nil {
			return cluster.Cost{}, err
		}
		least := 0
		for j := range in {
			if x.AtVec(j) < x.AtVec(least) {
				least = j
			}
		}
		if x.AtVec(least) >= 0 {
			var all [3]float64
			for j, k := range in {
				all[k] = x.AtVec(j)
			}
			return cluster.Cost{Message: time.Duration(all[0] + 0.5), Segment: time.Duration(all[1] + 0.5), Byte: all[2]}, nil
		}
		in = slices.Delete(in, least, least+1)
	}
	return cluster.Cost{}, nil
}

// Part is one part of a sweep: its points, and what they took.
type Part struct {
	Points int
	Took   time.Duration
}

// Rate is how many points a second are relaxed, and what a part takes beside them. Parts of
// one length alone say nothing of the latter.
func Rate(of []Part) (rate float64, part time.Duration, err error) {
	times := map[int][]float64{}
	var sizes []int
	for _, p := range of {
		if times[p.Points] == nil {
			sizes = append(sizes, p.Points)
		}
		times[p.Points] = append(times[p.Points], float64(p.Took))
	}
	if len(sizes) == 0 {
		return 0, 0, errors.New("no part was relaxed")
	}
	slices.Sort(sizes)
	var x, y []float64
	for _, n := range sizes {
		x, y = append(x, float64(n)), append(y, quiet(times[n]))
	}
	alpha, beta := 0.0, y[len(y)-1]/x[len(x)-1]
	if len(sizes) > 1 {
		alpha, beta = stat.LinearRegression(x, y, nil, false)
		if alpha < 0 || beta <= 0 {
			alpha, beta = 0, y[len(y)-1]/x[len(x)-1]
		}
	}
	if beta <= 0 {
		return 0, 0, errors.New("relaxations took no time that the clock knows")
	}
	return 1e9 / beta, time.Duration(alpha + 0.5), nil
}
