package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// evaluateFixedPoint evaluates a vector of an iteration: RelativeResidual, ResidualInf and Sum, the sum of all values. There is
// neither an obstacle nor an error bound: how far F contracts is known to its user.
func evaluateFixedPoint(p *problem.Problem, u []float64) (Evaluation, error) {
	if err := p.ValidateStatement(); err != nil {
		return Evaluation{}, err
	}
	out := Evaluation{ErrorBound: math.NaN(), MaxError: math.NaN(), Certificate: Certificate{
		Inverse: math.NaN(), Why: "the problem is an iteration, of which only its residual is known",
	}}
	var err error
	if out.RelativeResidual, out.ResidualInf, err = p.FixedPoint.Residual(u); err != nil {
		return Evaluation{}, p.Errorf("%v", err)
	}
	var sum kernel.Sum
	for _, v := range u {
		sum.Add(v)
	}
	out.Sum = sum.Float64()
	return out, nil
}
