package progress

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A residual that starts at 1 and falls by a factor of ten per second reaches 1e-6 after 6 s.
func TestEstimator(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	require.Negative(t, e.left())
	e.Update(0, 0, math.NaN())
	require.Zero(t, e.Done())
	at := func(s float64) { e.Update(time.Duration(s*float64(time.Second)), uint64(1000*s), math.Pow(10, -s)) }
	for s := 0.0; s <= 2; s += 0.05 {
		at(s)
	}
	require.InDelta(t, 4, e.left().Seconds(), 0.2)
	require.InDelta(t, 2.0/6, e.Done(), 0.02)
	at(7)
	require.Zero(t, e.left())
	require.Equal(t, 1.0, e.Done())
}

// A residual that rises, as it may in an asynchronous run, does not change the estimate.
func TestEstimatorSurvivesNoise(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	for i, r := range []float64{1, 0.5, 0.6, 0.55, 0, math.NaN(), math.Inf(1), 0.3} {
		e.Update(time.Duration(i)*time.Second, uint64(i), r)
		require.GreaterOrEqual(t, e.Done(), 0.0)
	}
	require.Positive(t, e.left())
}

func TestBarGoesAway(t *testing.T) {
	var out bytes.Buffer
	bars := NewBars(&out)
	b := bars.Add("membrane", 1e-6)
	b.Update(time.Second, 100, 1e-3)
	require.Contains(t, b.Estimator.text(), "residual 1.00e-03 of 1e-06  sweep 100  1.0 s")
	b.Remove()
	bars.Close()
}

// The bar of a problem with time steps counts the steps, whatever their residuals are.
func TestEstimatorOfTimeSteps(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	e.Step(1, 10)
	e.Update(time.Second, 50, 1e-5)
	require.Zero(t, e.Done())
	require.Negative(t, e.left(), "no step is complete")
	e.Step(4, 10)
	e.Update(3*time.Second, 150, 0.5)
	require.InDelta(t, 0.3, e.Done(), 1e-12)
	require.InDelta(t, 7, e.left().Seconds(), 1e-9)
	require.Contains(t, e.text(), "step 4 of 10  residual 5.00e-01")
}
