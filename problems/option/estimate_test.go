package option

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// anyContract returns a random contract on d assets.
func anyContract(r *rand.Rand, d int) *Option {
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	o := &Option{
		Payoff: Payoff(r.IntN(2)), Basket: Basket(r.IntN(4)), Strike: 100, Rate: between(0,
			0.12), Maturity: math.Exp(between(math.Log(0.1), math.Log(3))),
		Steps: []int{16, 32, 64, 128}[r.IntN(4)], Correlation: Correlated(between(-0.2, 0.6)),
	}
	for range d {
		o.Assets = append(o.Assets, Asset{Price: between(80, 120), Volatility: between(0.1, 0.6),
			Dividend: between(0, 0.1)})
	}
	return o
}

// estimated holds the estimated error of a contract, the true error by the lattice, and the approximate error of
// the lattice (slack).
type estimated struct {
	about, why            string
	d                     int
	estimate, true, slack float64
}

func estimateOf(t *testing.T, seed uint64, d int) estimated {
	r := rand.New(rand.NewPCG(seed, 13))
	o := anyContract(r, d)
	n := [3]int{1, 1, 1}
	points := [][]int{{31, 63, 100, 127, 255}, {31, 48, 63}, {15}}[d-1]
	for a, m := 0, points[r.IntN(len(points))]; a < d; a++ {
		n[a] = m
	}
	if d == 3 {
		o.Steps = 16
	}
	p, err := o.Problem("option", n)
	require.NoError(t, err)
	s, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-8, 300, nil)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	q, err := o.Quote(p.AtStep(p.Steps()), s.U)
	require.NoError(t, err)
	e := estimated{d: d}
	e.estimate, e.why, err = o.PriceError(q.Price, n, nil)
	require.NoError(t, err)
	tree, steps := latticeOf(o), []int{600, 120, 40}[d-1]
	limit := tree.limit(steps)
	// both are exact in the exercise region
	e.true, e.slack = math.Abs(q.Price-limit), math.Abs(limit-tree.limit(steps/2))+1e-10
	e.about = fmt.Sprintf("%d-D n = %d, %d steps, %s: price %.5f, error %.1e (tree ± %.0e), estimate %.1e", d, n[0],
		o.Steps, o, q.Price, e.true, e.slack, e.estimate)
	return e
}

// For random contracts the estimate is seldom below a third of the true error, and mostly within a factor of 3 of
// it. The true error is that against lattices, which are independent code.
func TestPriceErrorOfRandomContracts(t *testing.T) {
	contracts := 32
	switch {
	case *long:
		contracts = 400
	case testing.Short():
		contracts = 20
	}
	var low, high, told, larger int
	for seed := range uint64(contracts) {
		d := 1
		switch {
		case seed%4 == 3:
			d = 2
		case *long && seed%20 == 6:
			d = 3
		}
		e := estimateOf(t, seed, d)
		require.Empty(t, e.why)
		told++
		switch {
		case 3*e.estimate < e.true-e.slack:
			low++
			t.Log("below a third: " + e.about)
		case e.estimate > 3*(e.true+e.slack):
			high++
		}
		if e.estimate >= e.true-e.slack {
			larger++
		}
	}
	t.Logf("of %d contracts: below a third of the error %d, above three times it %d, at least the error %d", told,
		low, high, larger)
	require.LessOrEqual(t, low, contracts/20)
	require.LessOrEqual(t, high, contracts/5)
}

// The estimate decreases with the error when grid and steps are refined. If they are too few, there is a reason
// instead of an estimate.
func TestPriceErrorFallsWithTheGrid(t *testing.T) {
	before := math.Inf(1)
	for _, n := range []int{31, 63, 127} {
		o := one(Put, 0)
		o.Steps = (n + 1) * (n + 1) / 64
		p, u := solved(t, o, n)
		q, err := o.Quote(p, u)
		require.NoError(t, err)
		e, why, err := o.PriceError(q.Price, p.N, nil)
		require.NoError(t, err)
		require.Empty(t, why)
		require.InEpsilon(t, math.Abs(q.Price-6.0904), e, 0.6, "n = %d", n)
		require.Less(t, e, before/2)
		before = e
	}
	for n, steps := range map[int]int{7: 64, 31: 1} {
		o := one(Put, 0)
		o.Steps = steps
		e, why, err := o.PriceError(6, [3]int{n, 1, 1}, nil)
		require.NoError(t, err)
		require.True(t, math.IsNaN(e))
		require.Contains(t, why, "too few")
	}
	perpetual := one(Put, 0)
	perpetual.Perpetual = true
	p, u := solved(t, perpetual, 63)
	q, err := perpetual.Quote(p, u)
	require.NoError(t, err)
	e, _, err := perpetual.PriceError(q.Price, p.N, nil)
	require.NoError(t, err)
	require.InEpsilon(t, math.Abs(q.Price-p.Exact(problem.Point{})), e, 2)
}
