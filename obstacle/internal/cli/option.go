package cli

import (
	"cmp"
	"fmt"
	"math"
	"runtime"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// optionRecord follows an American option's exercise boundary through the time steps.
// A nil one is of a problem that is no option.
type optionRecord struct {
	contract *option.Option
	keep     bool // every step: somebody wants the boundary in time
	rows     []output.Exercise
	err      error // of a step's boundary, the first
}

// newOptionRecord prepares it; an exercise boundary among the outputs of any other
// problem is bad usage.
func newOptionRecord(w *work, out []string) (*optionRecord, error) {
	r := &optionRecord{contract: w.spec.Option()}
	for _, name := range out {
		if !output.IsExercise(name) {
			continue
		}
		if r.contract == nil {
			return nil, usage("--out %s: an exercise boundary of a problem that is no American option", name)
		}
		r.keep = true
	}
	if r.contract == nil {
		return nil, nil
	}
	return r, nil
}

// step looks at the end of time step m.
func (r *optionRecord) step(m int, t float64, at *problem.Problem, u []float64) {
	if r == nil || !r.keep || m == 0 || r.err != nil {
		return
	}
	factor, err := r.contract.Critical(at, u)
	if err != nil {
		r.err = fmt.Errorf("the exercise boundary at the end of time step %d: %w", m, err)
		return
	}
	r.rows = append(r.rows, output.Exercise{Time: t, Factor: factor})
}

// fewPoints of a grid are solved on by one thread.
const fewPoints = 1 << 14

// quote reads the answer off the solution, and estimates the error of the price where the run
// has come to its end; write then has the boundary in time, of a perpetual option that of
// all times.
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
			e = parallel(runtime.GOMAXPROCS(0))
		}
		if off, why, err = r.contract.PriceError(q.Price, end.N, e); err != nil {
			return nil, err
		}
	}
	return report.NewOption(r.contract, q, factor, off, why), nil
}

// write puts the exercise boundary into a file.
func (r *optionRecord) write(name string) error {
	var spot []float64
	for _, a := range r.contract.Assets {
		spot = append(spot, a.Price)
	}
	return cmp.Or(output.WriteExercise(name, spot, r.rows), r.err)
}

// extra are the assets' prices at the grid's points, which files of the solution show.
func (r *optionRecord) extra() (out []output.Extra) {
	if r == nil {
		return nil
	}
	prices, err := r.contract.Prices()
	if err != nil {
		return nil // the run would have been refused
	}
	for i, s := range prices {
		out = append(out, output.Extra{Name: fmt.Sprintf("S%d", i+1), Of: s})
	}
	return out
}

// optionWarnings says what may spoil the price; nothing of any other problem.
func optionWarnings(w *work) []string {
	if o := w.spec.Option(); o != nil {
		return o.Warnings()
	}
	return nil
}
