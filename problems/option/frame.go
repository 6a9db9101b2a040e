package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
	"gonum.org/v1/gonum/mat"
)

// frame is the coordinate transformation log(S/S₀) = L·y. In the coordinates y the assets move independently
// with the annual variance 1.
type frame struct {
	d       int
	spot    [MaxAssets]float64            // S₀
	lower   [MaxAssets][MaxAssets]float64 // L, the Cholesky factor of the covariance
	inverse [MaxAssets][MaxAssets]float64 // L⁻¹
	growth  [MaxAssets]float64            // r − q
	drift   [MaxAssets]float64            // m = L⁻¹·(r − q − σ²/2)
}

// newFrame factors the correlation matrix. It returns an error if the matrix is not a correlation matrix.
func newFrame(o *Option) (*frame, error) {
	f := &frame{d: len(o.Assets)}
	if err := checkCorrelation(&o.Correlation, f.d); err != nil {
		return nil, err
	}
	m := mat.NewSymDense(f.d, nil)
	for i := range f.d {
		for j := range i + 1 {
			m.SetSym(i, j, o.Correlation[i][j])
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(m) || factor.Cond() > maxCondition {
		return nil, notPositiveDefinite(m)
	}
	var l mat.TriDense
	factor.LTo(&l)
	for i, a := range o.Assets {
		f.spot[i], f.growth[i] = a.Price, o.Rate-a.Dividend
		for j := range i + 1 {
			f.lower[i][j] = a.Volatility * l.At(i, j)
		}
	}
	f.invert()
	for i := range f.d {
		for j := range i + 1 {
			s := o.Assets[j].Volatility
			f.drift[i] += f.inverse[i][j] * (f.growth[j] - float64(s*s)/2)
		}
	}
	return f, nil
}

// maxCondition bounds the condition number of a correlation matrix. Above it rounding errors dominate.
const maxCondition = 1e12

// invert computes L⁻¹ column by column.
func (f *frame) invert() {
	for j := range f.d {
		f.inverse[j][j] = 1 / f.lower[j][j]
		for i := j + 1; i < f.d; i++ {
			sum := 0.0
			for k := j; k < i; k++ {
				sum += float64(f.lower[i][k] * f.inverse[k][j])
			}
			f.inverse[i][j] = -sum / f.lower[i][i]
		}
	}
}

// prices returns S at y.
func (f *frame) prices(y problem.Point) (s [MaxAssets]float64) {
	for i := range f.d {
		s[i] = f.spot[i] * math.Exp(f.logReturn(i, y))
	}
	return s
}

// logReturn returns log(Sᵢ/S₀ᵢ) at y.
func (f *frame) logReturn(i int, y problem.Point) float64 {
	return float64(f.lower[i][0]*y[0]) + float64(f.lower[i][1]*y[1]) + float64(f.lower[i][2]*y[2])
}

// ray returns the direction of y along which all prices grow by the same factor: log(S/S₀) = s·(1, …, 1) at s·ray.
func (f *frame) ray() (y problem.Point) {
	for i := range f.d {
		for j := range i + 1 {
			y[i] += f.inverse[i][j]
		}
	}
	return y
}

// lognormal returns a single asset with the distribution of the geometric basket: log G has the annual drift
// mu and volatility sigma. For one asset it is that asset.
func (o *Option) lognormal(f *frame) (value, mu, sigma float64) {
	var l [MaxAssets]float64
	log := 0.0
	for i, a := range o.Assets {
		w := o.weight(i)
		log += w * math.Log(a.Price)
		mu += w * (f.growth[i] - float64(a.Volatility*a.Volatility)/2)
		for j := range l {
			l[j] += w * f.lower[i][j]
		}
	}
	return math.Exp(log), mu, math.Sqrt(float64(l[0]*l[0]) + float64(l[1]*l[1]) + float64(l[2]*l[2]))
}
