package calibration

import (
	"errors"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// middle returns the median of values, which it sorts. The machine's other work is included, since
// runs meet it as well.
func middle(values []float64) float64 {
	slices.Sort(values)
	return stat.Quantile(0.5, stat.Empirical, values, nil)
}

// fitCosts returns the non-negative costs whose sums fit the exchanges best, by least squares of
// relative errors.
func fitCosts(of []exchange) (send, receive cluster.Cost, err error) {
	if len(of) < 4 {
		return send, receive, errors.New("costs of three kinds are not known from fewer than four exchanges")
	}
	if send, err = cost(of, func(e *exchange) time.Duration { return e.Send }); err != nil {
		return send, receive, err
	}
	receive, err = cost(of, func(e *exchange) time.Duration { return e.Receive })
	return send, receive, err
}

// cost fits message + segments·segment + bytes·byte. If costs are negative, the most negative one is
// left out and the others are fitted again.
func cost(of []exchange, took func(e *exchange) time.Duration) (cluster.Cost, error) {
	in := []int{0, 1, 2}
	if !slices.ContainsFunc(of, func(e exchange) bool { return e.Segments != of[0].Segments }) {
		in = []int{0, 2} // the cost of a segment is part of the message's then
	}
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
		least := floats.MinIdx(x.RawVector().Data)
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

// timedPart is one part of a sweep: its points and its time.
type timedPart struct {
	Points int
	Took   time.Duration
}

// rate returns the points relaxed per second and the additional time of a part, by regression of the
// median times of parts of each length. Together they give the median time of a sweep. Parts of one
// length determine no additional time.
func rate(of []sweep) (rate float64, part time.Duration, err error) {
	times := map[int][]float64{}
	for i := range of {
		for _, p := range of[i].parts {
			times[p.Points] = append(times[p.Points], float64(p.Took))
		}
	}
	sizes := slices.Sorted(maps.Keys(times))
	var x, y []float64
	for _, n := range sizes {
		x, y = append(x, float64(n)), append(y, middle(times[n]))
	}
	alpha := 0.0
	if len(sizes) > 1 {
		alpha, _ = stat.LinearRegression(x, y, nil, false)
		alpha = min(max(0, alpha), y[0])
	}
	var each []float64 // nanoseconds per point
	for i := range of {
		s, points := &of[i], 0
		for _, p := range s.parts {
			points += p.Points
		}
		if points > 0 {
			each = append(each, (float64(s.relaxing)-alpha*float64(len(s.parts)))/float64(points))
		}
	}
	if len(each) == 0 {
		return 0, 0, errors.New("nothing was relaxed")
	}
	point := middle(each)
	if point <= 0 {
		return 0, 0, errors.New("relaxations took no time that the clock knows")
	}
	return 1e9 / point, time.Duration(alpha + 0.5), nil
}
