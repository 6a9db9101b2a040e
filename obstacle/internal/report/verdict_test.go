package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestVerdict(t *testing.T) {
	nan := math.NaN()
	row := func(name string, seconds, spread, sweeps, idle, age, messages float64) Contender {
		return Contender{name, 4, seconds, seconds - spread, seconds + spread, sweeps, idle, age, messages}
	}
	for name, c := range map[string]struct {
		rows   []Contender
		rounds int
		want   string
	}{
		"less idle": {
			[]Contender{row("sync", 1, 0.05, 1000, 0.5, 0, 6000), row("async", 0.5, 0.02, 1250, 0.1, 0.8, 7500)}, 3,
			"on 4 peers, async is 2.00 times as fast as sync (0.5 s, 0.48 to 0.52 against 1 s, 0.95 to 1.05), because a " +
				"sweep takes 0.40 of the time (idle 10 % of it, against 50 %), although it needs 1.25 times as many sweeps " +
				"(of async, values are 0.8 sweeps old on average)",
		},
		"fewer sweeps": {
			[]Contender{row("sync", 1, 0.05, 1000, 0.1, 0, 6000), row("async", 1.5, 0.02, 1500, 0.1, 1.5, 6000)}, 3,
			"on 4 peers, sync is 1.50 times as fast as async (1 s, 0.95 to 1.05 against 1.5 s, 1.48 to 1.52), because " +
				"it needs 0.67 of the sweeps (of async, values are 1.5 sweeps old on average)",
		},
		"fewer messages": {
			[]Contender{row("sync", 1, 0, 1000, nan, nan, 9000), row("hybrid", 0.5, 0, 1000, nan, nan, 3000)}, 0,
			"on 4 peers, hybrid is 2.00 times as fast as sync (0.5 s against 1 s), because a sweep takes 0.50 of the " +
				"time (with 0.33 times the messages in each)",
		},
		"idle, but slower in every sweep": {
			[]Contender{row("sync", 1, 0, 1000, 0.1, 0, 1000), row("async", 2, 0, 1000, 0.6, nan, 1000)}, 0,
			"on 4 peers, sync is 2.00 times as fast as async (1 s against 2 s), because a sweep takes 0.50 of the time " +
				"(idle 10 % of it, against 60 %)",
		},
		"a reason that does not fit is not given": {
			[]Contender{row("sync", 1, 0, 1000, 0.6, 0, 9000), row("async", 2, 0, 1000, 0.1, 0, 1000)}, 0,
			"on 4 peers, sync is 2.00 times as fast as async (1 s against 2 s), because a sweep takes 0.50 of the time",
		},
		"fewer sweeps, each longer": {
			[]Contender{row("async", 2, 0, 4000, 0.1, 5, 1000), row("hybrid", 1, 0, 1000, 0.7, nan, 250)}, 0,
			"on 4 peers, hybrid is 2.00 times as fast as async (1 s against 2 s), because it needs 0.25 of the sweeps (of " +
				"async, values are 5.0 sweeps old on average), although a sweep takes 2.00 times as long (idle 70 % of " +
				"it, against 10 %)",
		},
		"within the spread": {
			[]Contender{row("sync", 1, 0.2, 1000, 0.5, 0, 1), row("async", 0.9, 0.1, 1000, 0.1, 0, 1)}, 3,
			"on 4 peers, async (0.9 s, 0.8 to 1) and sync (1 s, 0.8 to 1.2) differ by less than the spread of the rounds: " +
				"neither is faster",
		},
		"one round": {
			[]Contender{row("sync", 1, 0, 1000, nan, nan, 1), row("async", 0.9, 0, 900, nan, nan, 1)}, 1,
			"on 4 peers, async is 1.11 times as fast as sync (0.9 s against 1 s), because it needs 0.90 of the sweeps; " +
				"one round does not show the spread",
		},
		"unknown sweeps": {
			[]Contender{row("sync", 1, 0, nan, 0.5, 0, 1), row("async", 0.5, 0, nan, 0.1, 1, 1)}, 0,
			"on 4 peers, async is 2.00 times as fast as sync (0.5 s against 1 s), because its peers are idle for 10 % of " +
				"the time instead of 50 %",
		},
	} {
		v := Judge(c.rows, c.rounds)
		require.NotNil(t, v, name)
		require.Equal(t, c.want, v.Sentence, name)
		require.Equal(t, c.rounds != 1, v.SpreadKnown)
		require.Equal(t, v.SpreadKnown, v.FactorLow.Known() && v.FactorHigh.Known(), "bounds without a spread would be equal")
	}
}

// Only rows with the same number of peers are compared, those with the most.
func TestVerdictComparesEqualPeers(t *testing.T) {
	row := func(name string, peers int, seconds float64) Contender {
		return Contender{Name: name, Peers: peers, Seconds: seconds, Fastest: seconds, Slowest: seconds, Sweeps: 1}
	}
	require.Nil(t, Judge(nil, 1))
	require.Nil(t, Judge([]Contender{row("sync", 1, 1), row("async", 2, 1)}, 1))
	require.Nil(t, Judge([]Contender{row("sync", 2, math.NaN()), row("async", 2, 1)}, 1))
	v := Judge([]Contender{row("sync", 1, 0.1), row("sync", 2, 1), row("async", 2, 2), row("sync", 4, 3),
		row("async", 4, 2),
		row("sync", 8, 1)}, 0)
	require.Equal(t, "async", *v.Winner)
	require.Equal(t, 4, v.Peers)
	require.InDelta(t, 1.5, float64(v.Factor), 1e-12)
}

// For drawn results the winner is the fastest, a difference within the spread has no reason, and the two factors of
// the time explain it: a reason without although lowers the time.
func TestVerdictOfDrawnResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Contender {
			c := Contender{
				Name: name, Peers: 2, Seconds: rapid.Float64Range(0.1, 10).Draw(t, "seconds"),
				Sweeps: rapid.Float64Range(10, 1000).Draw(t, "sweeps"), Idle: rapid.Float64Range(0, 1).Draw(t, "idle"),
				Age: rapid.Float64Range(0, 3).Draw(t, "age"), Messages: rapid.Float64Range(1, 1e6).Draw(t, "messages"),
			}
			spread := rapid.Float64Range(0, 0.5).Draw(t, "spread") * c.Seconds
			c.Fastest, c.Slowest = c.Seconds-spread, c.Seconds+spread
			return c
		}
		a, b := draw("a"), draw("b")
		v := Judge([]Contender{a, b}, 3)
		if b.Seconds < a.Seconds {
			a, b = b, a
		}
		require.Equal(t, a.Name, *v.Fastest)
		require.Equal(t, v.WithinSpread, v.Winner == nil)
		require.GreaterOrEqual(t, float64(v.Factor), 1.0)
		require.Equal(t, a.Slowest >= b.Fastest, v.WithinSpread)
		require.InEpsilon(t, 1/float64(v.Factor), float64(v.SweepRatio*v.CostRatio), 1e-9)
		if v.WithinSpread {
			require.Empty(t, v.Reasons)
			return
		}
		helps := 0
		for _, r := range v.Reasons {
			if r[:len("although")] != "although" {
				helps++
			}
		}
		want := 0
		for _, ratio := range []float64{float64(v.SweepRatio), float64(v.CostRatio)} {
			if ratio < 1-equalRatio {
				want++
			}
		}
		require.Equal(t, want, helps)
	})
}
