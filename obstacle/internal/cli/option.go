package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// optionRecord records the exercise boundary of an American option during the time steps. It is nil for other problems.
type optionRecord struct {
	contract *option.Option
	keep     bool // record every step, for an output of the boundary in time
	rows     []output.Exercise
	err      error // the first error of a boundary
}

// newOptionRecord returns the record of a problem. An output of the exercise boundary needs an American option.
func newOptionRecord(w *work, out []string) (*optionRecord, error) {
	contract, i := w.spec.Option(), slices.IndexFunc(out, output.IsExercise)
	switch {
	case contract != nil:
		return &optionRecord{contract: contract, keep: i >= 0}, nil
	case i >= 0:
		return nil, usage("--out %s: only American options have an exercise boundary", out[i])
	}
	return nil, nil
}

// step records the end of time step m.
func (r *optionRecord) step(m int, t float64, at *problem.Problem, u []float64) {
	if r == nil || !r.keep || m == 0 || r.err != nil {
		return
	}
	factor, err := r.contract.Critical(at, u)
	if err != nil {
		r.err = fmt.Errorf("exercise boundary at the end of time step %d: %w", m, err)
		return
	}
	r.rows = append(r.rows, output.Exercise{Time: t, Factor: factor})
}

// fewPoints is the number of points up to which one thread is used.
const fewPoints = 1 << 14

// quote returns the price and its sensitivities, with an estimate of the error if the run was complete. For a
// perpetual option it also sets the boundary that write writes.
func (r *optionRecord) quote(end *problem.Problem, u []float64, solved bool) (*report.Option, error) {
	if r == nil || len(u) != end.Points() {
		return nil, nil
	}
	q, err := r.contract.Quote(end, u)
	if err != nil {
		return nil, err
	}
	factor, err := r.contract.Critical(end, u)
	if err != nil {
		return nil, err
	}
	if r.contract.Perpetual {
		r.rows = []output.Exercise{{Time: math.Inf(1), Factor: factor}}
	}
	off, why := math.NaN(), "the run was stopped before its end"
	if solved {
		var e problem.Executor
		if end.Points() >= fewPoints {
			e = parallel{}
		}
		if off, why, err = r.contract.PriceError(q.Price, end.N, e); err != nil {
			return nil, err
		}
	}
	return report.NewOption(r.contract, q, factor, off, why), nil
}

// write writes the exercise boundary to a file.
func (r *optionRecord) write(name string) error {
	var spot []float64
	for _, a := range r.contract.Assets {
		spot = append(spot, a.Price)
	}
	return cmp.Or(output.WriteExercise(name, spot, r.rows), r.err)
}

// extra returns the prices of the assets at the grid points, for the files of the solution.
func (r *optionRecord) extra() (out []output.Extra) {
	if r == nil {
		return nil
	}
	prices, err := r.contract.Prices()
	if err != nil {
		return nil // impossible: the run was not refused
	}
	for i, s := range prices {
		out = append(out, output.Extra{Name: fmt.Sprintf("S%d", i+1), Of: s})
	}
	return out
}
