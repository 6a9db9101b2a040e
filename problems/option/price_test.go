package option

import (
	"flag"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
)

var long = flag.Bool("long", false, "also price several assets on fine grids")

// one returns an option on one asset.
func one(kind Payoff, dividend float64) *Option {
	return &Option{
		Payoff: kind, Strike: 100, Rate: 0.05, Maturity: 1, Steps: 64,
		Assets: []Asset{{100, 0.2, dividend}}, Correlation: Uncorrelated(),
	}
}

// solved returns the solution at the end of the last step, and its problem.
func solved(t testing.TB, o *Option, n int) (*problem.Problem, []float64) {
	grid := [3]int{1, 1, 1}
	for i := range o.Assets {
		grid[i] = n
	}
	p, err := o.Problem("option", grid)
	require.NoError(t, err)
	require.NoError(t, p.Validate())
	if len(o.Assets) == 3 { // multigrid is several times faster there
		s, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-7, 300, nil)
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, s.Reason)
		return p.AtStep(p.Steps()), s.U
	}
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-7, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	return p.AtStep(p.Steps()), s.U
}

func quote(t testing.TB, o *Option, n int) Quote {
	p, u := solved(t, o, n)
	q, err := o.Quote(p, u)
	require.NoError(t, err)
	return q
}

// normal is the standard normal distribution function.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// blackScholes returns the European price of a call (sign 1) or a put (−1).
func blackScholes(sign, spot, strike, rate, yield, sigma, years float64) float64 {
	d := (math.Log(spot/strike) + (rate-yield+sigma*sigma/2)*years) / (sigma * math.Sqrt(years))
	return sign * (spot*math.Exp(-yield*years)*normal(sign*d) - strike*math.Exp(-rate*years)*normal(sign*(d-sigma*math.Sqrt(years))))
}

// The lattice itself is compared with the closed form of European options.
func TestLatticeAgainstBlackScholes(t *testing.T) {
	for _, kind := range []Payoff{Put, Call} {
		l := latticeOf(one(kind, 0.03))
		l.early = false
		require.InDelta(t, blackScholes(float64(2*kind-1), 100, 100, 0.05, 0.03, 0.2, 1), l.limit(1000), 2e-4)
	}
}

// several returns an option on d different assets.
func several(kind Payoff, basket Basket, d int) *Option {
	o := &Option{
		Payoff: kind, Basket: basket, Strike: 100, Rate: 0.05, Maturity: 1, Steps: 32,
		Assets: []Asset{{100, 0.2, 0.08}, {95, 0.3, 0.05}, {105, 0.25, 0.01}}[:d],
	}
	o.Correlation = [3][3]float64{{1, 0.5, -0.2}, {0.5, 1, 0.1}, {-0.2, 0.1, 1}}
	return o
}

// extrapolated removes the error term of first order in Δt.
func extrapolated(t *testing.T, o *Option, n int) Quote {
	coarse := quote(t, o, n)
	finer := *o
	finer.Steps *= 2
	q := quote(t, &finer, n)
	q.Price = 2*q.Price - coarse.Price
	return q
}

func TestOneAssetAgainstTheLattice(t *testing.T) {
	for _, kind := range []Payoff{Put, Call} {
		for _, dividend := range []float64{0, 0.03, 0.08} {
			for i, spot := range []float64{85, 100, 113} {
				if testing.Short() && (int(kind)+i)%2 != 0 {
					continue
				}
				o := one(kind, dividend)
				o.Assets[0].Price = spot
				want := latticeOf(o).limit(500)
				require.InDelta(t, want, extrapolated(t, o, 127).Price, 6e-3, "%v, dividend %g, price %g", kind,
					dividend, spot)
			}
		}
	}
}

// A call on an asset without dividends is never exercised early, so price, delta and gamma have a closed form.
func TestCallWithoutDividends(t *testing.T) {
	o := one(Call, 0)
	o.Steps = 128
	p, u := solved(t, o, 255)
	q, err := o.Quote(p, u)
	require.NoError(t, err)
	d := (math.Log(1) + 0.05 + 0.02) / 0.2
	require.InDelta(t, blackScholes(1, 100, 100, 0.05, 0, 0.2, 1), q.Price, 1e-2)
	require.InDelta(t, normal(d), q.Delta[0], 2e-4)
	require.InDelta(t, math.Exp(-d*d/2)/math.Sqrt(2*math.Pi)/(100*0.2), q.Gamma[0][0], 1e-4)
	require.False(t, q.Exercise)
	critical, err := o.Critical(p, u)
	require.NoError(t, err)
	require.True(t, math.IsNaN(critical), "it is never exercised, but the factor is %g", critical)
}

// Different, correlated assets and baskets with a convex payoff.
func TestTwoAssetsAgainstTheLattice(t *testing.T) {
	for i, c := range []struct {
		kind   Payoff
		basket Basket
	}{{Put, Minimum}, {Put, Arithmetic}, {Put, Geometric}, {Call, Maximum}, {Call, Arithmetic}} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(c.kind.String()+" "+c.basket.String(), func(t *testing.T) {
			t.Parallel()
			o := several(c.kind, c.basket, 2)
			o.Steps = 16
			require.InEpsilon(t, latticeOf(o).limit(120), extrapolated(t, o, 47).Price, 4e-3)
		})
	}
}

// The payoffs of a put on the maximum and a call on the minimum have a ridge along which they are exercised.
// Grids and trees that are not aligned with it have an error of first order.
func TestRidges(t *testing.T) {
	steps := 160
	if testing.Short() {
		steps = 80
	}
	for kind, basket := range map[Payoff]Basket{Put: Maximum, Call: Minimum} {
		o := several(kind, basket, 2)
		o.Steps = 16
		got, want := extrapolated(t, o, 47).Price, latticeOf(o).limit(steps)
		t.Logf("%v on the %v of two: %.4f, lattice %.4f", kind, basket, got, want)
		require.InEpsilon(t, want, got, 5e-2)
	}
}

func TestThreeAssetsAgainstTheLattice(t *testing.T) {
	n, steps, tree, tolerance := 23, 4, 24, 1.2e-2
	if *long {
		n, steps, tree, tolerance = 47, 16, 60, 4e-3
	}
	for kind, basket := range map[Payoff]Basket{Put: Arithmetic, Call: Maximum} {
		o := several(kind, basket, 3)
		o.Steps = steps
		got, want := extrapolated(t, o, n).Price, latticeOf(o).limit(tree)
		t.Logf("%v on the %v of three: %.4f, lattice %.4f", kind, basket, got, want)
		require.InEpsilon(t, want, got, tolerance)
	}
}

// An option on the geometric mean of three assets equals one on a single asset with another volatility and
// dividend, which follow from mean and variance of Σwᵢ·log Sᵢ.
func TestGeometricBasketIsOneAsset(t *testing.T) {
	o := several(Put, Geometric, 3)
	o.Weights = []float64{0.5, 0.3, 0.2}
	mean, variance, log := 0.0, 0.0, 0.0
	for i, a := range o.Assets {
		log += o.Weights[i] * math.Log(a.Price)
		mean += o.Weights[i] * (o.Rate - a.Dividend - a.Volatility*a.Volatility/2)
		for j, b := range o.Assets {
			variance += o.Weights[i] * o.Weights[j] * a.Volatility * b.Volatility * o.Correlation[i][j]
		}
	}
	o.Steps = 8
	single := one(Put, o.Rate-mean-variance/2)
	single.Assets[0].Price, single.Assets[0].Volatility, single.Steps = math.Exp(log), math.Sqrt(variance), 8
	n, tolerance := 31, 1.5e-2
	if *long {
		n, tolerance = 63, 4e-3
	}
	p, u := solved(t, o, n)
	got, err := o.Quote(p, u)
	require.NoError(t, err)
	factor, err := o.Critical(p, u)
	require.NoError(t, err)
	p, u = solved(t, single, 511)
	want, err := single.Quote(p, u)
	require.NoError(t, err)
	exact, err := single.Critical(p, u)
	require.NoError(t, err)
	require.InEpsilon(t, exact, factor, 2.5e-2, "the critical factor")
	t.Logf("three assets, n = %d: %.4f; one asset: %.4f", n, got.Price, want.Price)
	require.InEpsilon(t, want.Price, got.Price, tolerance)
	g := math.Exp(log)
	for i, a := range o.Assets { // the chain rule through G = Π Sᵢ^wᵢ
		w := o.Weights[i] / a.Price
		require.InDelta(t, want.Delta[0]*g*w, got.Delta[i], 2e-3)
		for j, b := range o.Assets {
			v := o.Weights[j] / b.Price
			gamma := want.Gamma[0][0]*g*g*w*v + want.Delta[0]*g*w*v
			if i == j {
				gamma -= want.Delta[0] * g * w / a.Price
			}
			require.InDelta(t, gamma, got.Gamma[i][j], 3e-4)
		}
	}
}

// Perpetual options have a closed form for price, derivatives and critical price.
func TestPerpetual(t *testing.T) {
	for _, dividend := range []float64{0, 0.02} {
		o := one(Put, dividend)
		o.Perpetual = true
		p, u := solved(t, o, 127)
		q, err := o.Quote(p, u)
		require.NoError(t, err)
		mu := 0.05 - dividend - 0.02
		beta := (-mu - math.Sqrt(mu*mu+0.004)) / 0.04
		critical := 100 * beta / (beta - 1)
		value := (100 - critical) * math.Pow(100/critical, beta)
		require.InDelta(t, value, q.Price, 1.5e-3)
		require.InDelta(t, value, p.Exact(problem.Point{}), 1e-12)
		require.InDelta(t, beta*value/100, q.Delta[0], 2e-4)
		require.InDelta(t, beta*(beta-1)*value/1e4, q.Gamma[0][0], 1e-5)
		factor, err := o.Critical(p, u)
		require.NoError(t, err)
		require.InDelta(t, critical, 100*factor, 0.06)
	}
	o := one(Put, 0) // from the literature: γ = 2r/σ², S* = γK/(1+γ)
	o.Perpetual = true
	p, err := o.Problem("put", [3]int{9, 1, 1})
	require.NoError(t, err)
	require.InDelta(t, (100-500./7)*math.Pow(1.4, -2.5), p.Exact(problem.Point{}), 1e-12)
}

// The perpetual put on the geometric mean of three assets has a closed form too. Perpetual options without a
// closed form have at least the value of those with a maturity.
func TestPerpetualBaskets(t *testing.T) {
	o := several(Put, Geometric, 3)
	o.Perpetual = true
	p, u := solved(t, o, 23)
	q, err := o.Quote(p, u)
	require.NoError(t, err)
	require.InEpsilon(t, p.Exact(problem.Point{}), q.Price, 1e-2)
	o = several(Put, Minimum, 2)
	lasting := quote(t, o, 23).Price
	o.Perpetual = true
	require.Greater(t, quote(t, o, 23).Price, lasting)
}

// Every payoff and basket on two and three different assets is compared with the lattice, after extrapolation.
func TestPriceTable(t *testing.T) {
	if !*long {
		t.Skip("fine grids: run with -args -long")
	}
	for d, c := range map[int]struct{ n, steps, tree int }{2: {127, 32, 300}, 3: {47, 8, 60}} {
		for _, kind := range []Payoff{Put, Call} {
			for basket := Minimum; basket <= Geometric; basket++ {
				o := several(kind, basket, d)
				o.Steps = c.steps
				coarse := quote(t, o, c.n/2).Price
				fine := quote(t, o, c.n).Price
				o.Steps *= 2
				finer := quote(t, o, c.n).Price
				want := latticeOf(o).limit(c.tree)
				best := 2*finer - fine + (fine-coarse)/3 // extrapolated in Δt and h²
				t.Logf("%d assets, %v on %-10v n = %d, %d steps %8.4f; extrapolated %8.4f; lattice %8.4f; error %8.4f %.2f %%",
					d, kind, basket, c.n, o.Steps, finer, best, want, best-want, 100*math.Abs(best/want-1))
				tolerance := 6e-3
				if kind == Put && basket == Maximum || kind == Call && basket == Minimum {
					tolerance = 0.1 // ridges (see TestRidges); the lattice is not more accurate
				}
				require.InEpsilon(t, want, best, tolerance)
			}
		}
	}
}

// TestNegativeRate prices options with negative interest. A put is then not exercised early and has Black and Scholes'
// price; a call with a dividend below the rate has that of the tree.
func TestNegativeRate(t *testing.T) {
	for _, rate := range []float64{-0.001, -0.02, -0.1} {
		o := one(Put, 0)
		o.Rate = rate
		require.NoError(t, o.Check())
		require.InDelta(t, blackScholes(-1, 100, 100, rate, 0, 0.2, 1), quote(t, o, 127).Price, 0.03)
		o = one(Call, rate+0.03)
		o.Rate = rate
		require.InDelta(t, latticeOf(o).limit(1000), quote(t, o, 127).Price, 0.06)
	}
}
