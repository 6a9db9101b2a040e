package progress

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A residual that starts at 1 and falls by a factor of ten per second reaches 1e-6 after 6 s.
func TestEstimator(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	requireUnknown(t, &e)
	e.Update(0, 0, math.NaN())
	require.Zero(t, e.Done())
	at := func(s float64) { e.Update(time.Duration(s*float64(time.Second)), uint64(1000*s), math.Pow(10, -s)) }
	for s := 0.0; s <= 2; s += 0.05 {
		at(s)
	}
	left, known := e.Left()
	require.True(t, known)
	require.Less(t, left.Least, 4*time.Second)
	require.Greater(t, left.Most, 4*time.Second)
	require.InDelta(t, 4/1.2/1.4, left.Least.Seconds(), 0.1)
	require.InDelta(t, 4*1.2*1.4+0.025, left.Most.Seconds(), 0.2)
	require.InDelta(t, 2.0/6, e.Done(), 0.02)
	at(7)
	left, _ = e.Left()
	require.Zero(t, left.Least)
	require.Less(t, left.Most, 3*time.Second, "the next observation is half as far as the last one")
	require.Equal(t, 1.0, e.Done())
}

// A range of more than 10 : 1 is not shown, except near the end of a run. Its lower end is known.
func TestWideRangeIsUnknown(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	at := func(s int, residual float64) { e.Update(time.Duration(s)*time.Second, uint64(100*s), residual) }
	for s := range 20 {
		at(s, math.Exp(-0.001*float64(s)))
	}
	for s := 20; s < 24; s++ {
		at(s, 0.97*math.Exp(-0.1*float64(s-19)))
	}
	requireUnknown(t, &e)
	require.Greater(t, e.LeftAtLeast(), time.Second)
	require.Equal(t, " residual 6.50e-01 of 1e-06  sweep 2300  23 s, time left not yet known", e.text())
	at(30, 2e-6)
	left, known := e.Left()
	require.True(t, known)
	require.Less(t, left.Most, 30*time.Second)
}

// A residual that falls steeply, rises and falls slowly from there, or that stays below the tolerance while the run goes on,
// does not promise an end at once.
func TestAnEndThatDoesNotComeIsNotPromised(t *testing.T) {
	e := Estimator{Tolerance: 1e-6}
	at := func(s, residual float64) { e.Update(time.Duration(s*float64(time.Second)), uint64(100*s), residual) }
	for s := 0.0; s < 0.5; s += 0.02 {
		at(s, math.Pow(10, -10*s))
	}
	left, known := e.Left()
	require.True(t, known)
	require.Less(t, left.Most, time.Second)
	for s := 0.5; s < 0.7; s += 0.02 {
		at(s, 1e-2)
		requireUnknown(t, &e)
	}
	for s := 0.7; s < 14; s += 0.02 {
		at(s, 1e-2*math.Pow(10, -4*(s-0.7)/13.9))
		if left, known = e.Left(); known {
			require.Greater(t, left.Most.Seconds(), 14.6-s, s)
		}
	}
	require.True(t, known, "the rates from the height are")
	for s := 14.6; s < 20; s += 0.02 {
		at(s, 1e-6*math.Exp(14.6-s))
		left, known := e.Left()
		require.True(t, !known || left.Most.Seconds() > 0.9*(s-14.6), s)
	}
}

func requireUnknown(t *testing.T, e *Estimator) {
	t.Helper()
	_, known := e.Left()
	require.False(t, known)
}

// Whatever is observed, a range is one, and the memory is bounded.
func TestAnyObservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Estimator{Tolerance: rapid.SampledFrom([]float64{1e-6, 1e-13, 0.5, 1, 0, -1, math.NaN()}).Draw(t, "tolerance")}
		elapsed, sweep := time.Duration(0), uint64(0)
		for range rapid.IntRange(0, 600).Draw(t, "observations") {
			elapsed += time.Duration(rapid.SampledFrom([]int64{0, 1, 1e6, 1e9, 1e15}).Draw(t, "time"))
			sweep = rapid.OneOf(rapid.Just(sweep+1), rapid.Just(sweep+100), rapid.Uint64()).Draw(t, "sweep")
			e.Update(elapsed, sweep, rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1),
				rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 0, 5e-324})).Draw(t, "residual"))
			left, known := e.Left()
			require.True(t, !known || 0 <= left.Least && left.Least <= left.Most, left)
			require.True(t, !known || left.Most <= max(10*left.Least+10, elapsed), left)
			require.GreaterOrEqual(t, e.LeftAtLeast(), time.Duration(0))
			require.LessOrEqual(t, len(e.falls), maxFalls)
			require.NotRegexp(t, "left.*-", e.text(), "no negative time")
		}
	})
}

// The ends of a range are rounded outwards.
func TestRangeText(t *testing.T) {
	for want, r := range map[string][2]float64{
		"under 1 s": {0.1, 0.9}, "less than 9 s": {0.9, 8.1}, "5 to 10 s": {5.9, 9.1}, "12 to 100 s": {12.5, 99.9},
		"0.1 to 2 min": {8, 101}, "less than 7 min": {5, 400},
		"1 to 21 min": {90, 1201}, "0.5 to 2 h": {1800, 6001},
		"3 to 5 days": {3 * 86400, 4.5 * 86400},
	} {
		require.Equal(t, want, widen(r[0], r[1], 1).String())
	}
}

// histories are the sweeps and residuals of runs of every method, as the program showed them.
//
//go:embed testdata/histories.json
var histories []byte

// Nine of ten ranges hold, over recorded runs of every method, and they are of use: half of those after the first third
// of a run are narrower than a factor of four.
func TestRangesHold(t *testing.T) {
	var runs map[string]struct {
		Sweeps    []uint64
		Residuals []float64
	}
	require.NoError(t, json.Unmarshal(histories, &runs))
	require.Greater(t, len(runs), 20)
	held, all := 0, 0
	var widths []float64
	for name, r := range runs {
		e, here, of := Estimator{Tolerance: 1e-6}, 0, 0
		end := float64(r.Sweeps[len(r.Sweeps)-1])
		for i, sweep := range r.Sweeps[:len(r.Sweeps)-1] {
			e.Update(time.Duration(sweep)*time.Second, sweep, r.Residuals[i]) // a sweep takes a second
			left, known := e.Left()
			if !known {
				continue
			}
			of++
			if truth := end - float64(sweep); left.Least.Seconds() <= truth && truth <= left.Most.Seconds() {
				here++
			}
			if float64(sweep) > end/3 {
				widths = append(widths, left.Most.Seconds()/max(left.Least.Seconds(), end/30))
			}
		}
		t.Logf("%-30s %3d of %3d", name, here, of)
		require.GreaterOrEqual(t, float64(here), 0.6*float64(of), name)
		held, all = held+here, all+of
	}
	slices.Sort(widths)
	t.Logf("%d of %d ranges hold; the median of their widths is a factor of %.2f", held, all, widths[len(widths)/2])
	require.GreaterOrEqual(t, float64(held), 0.9*float64(all))
	require.Less(t, widths[len(widths)/2], 4.0)
}

// Without a terminal there is a line at 1, 2, 4, 8 … seconds, the first before anything is known.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		start := time.Now()
		bars := NewLines(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprintf("%v %s", time.Since(start), line))
		})
		bar := bars.Add("membrane", 1e-6)
		time.Sleep(1500 * time.Millisecond)
		for i := 1; i <= 5; i++ {
			bar.Update(time.Duration(i)*200*time.Millisecond, uint64(100*i), math.Pow(10, -float64(i)/5))
		}
		time.Sleep(3 * time.Second)
		bar.Remove()
		done := bars.Wait("measuring")
		time.Sleep(2500 * time.Millisecond)
		done()
		time.Sleep(time.Hour)
		bars.Close()
		require.Equal(t, []string{
			"1s membrane: nothing is relaxed yet after 1.0 s",
			"2s membrane: residual 1.00e-01 of 1e-06  sweep 500  1.0 s, left 1 to 14 s",
			"4s membrane: residual 1.00e-01 of 1e-06  sweep 500  1.0 s, left 1 to 14 s",
			"5.5s measuring: 1.0 s", "6.5s measuring: 2.0 s",
		}, lines)
	})
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
	requireUnknown(t, &e)
	e.Update(3*time.Second, 140, 1e-6)
	e.Step(4, 10)
	e.Update(3*time.Second, 150, 0.5)
	require.InDelta(t, 0.3, e.Done(), 1e-12)
	left, known := e.Left()
	require.True(t, known)
	require.InDelta(t, 7/stepsDiffer, left.Least.Seconds(), 1e-9)
	require.InDelta(t, 7*stepsDiffer, left.Most.Seconds(), 1e-9)
	require.Contains(t, e.text(), "step 4 of 10  residual 5.00e-01")
}
