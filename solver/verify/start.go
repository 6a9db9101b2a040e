package verify

import "github.com/p2pdc/p2pdc/solver/problem"

// BetterStart returns the starting iterate of a stationary run, made from initial or, if that is nil, from the problem,
// and its evaluation by Measure, if its relative residual is smaller than the given one of the last iterate. Otherwise it
// returns nil. The start max(φ, 0) has the relative residual 1.
func BetterStart(p *problem.Problem, initial []float64, residual float64, x problem.Executor) ([]float64, Evaluation, error) {
	if residual <= 1 && initial == nil && p.Initial == nil {
		return nil, Evaluation{}, nil
	}
	start := make([]float64, p.Points())
	p.Start(start, initial, problem.Box{Hi: p.N})
	e, err := Measure(p, start, x)
	if err != nil || residual <= e.RelativeResidual {
		return nil, Evaluation{}, err
	}
	return start, e, nil
}
