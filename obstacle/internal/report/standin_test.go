package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

func TestFullGrid(t *testing.T) {
	for name, c := range map[string]struct {
		how          Growth
		fine, coarse float64 // on stand-ins 4 and 8
		want         float64
	}{
		"layers that are sent first":      {Linear, 2.4, 2.8, 2.1},
		"nothing less than the ideal":     {Linear, 1.1, 1.8, 1},
		"a slow machine":                  {Aged, 3.3, 3.3, 3.3},
		"a slow machine, slightly better": {Aged, 3.3, 3.1, 3.3},
		"a slow machine and old faces":    {Aged, 3.3, 3.7, 3},
		"faces a few sweeps old":          {Aged, 1.2, 1.4, 1.05},
		"faces old by a block":            {Aged, 1.16, 1.64, 1.01},
		"no more than the square":         {Aged, 1.16, 9, 1.01},
		"no excess":                       {Aged, 1, 1.1, 1},
		"another method":                  {Unknown, 5, 6, 5},
	} {
		v, ok := FullGrid(c.how, StandIn{4, nullable.Number(c.fine)}, StandIn{8, nullable.Number(c.coarse)}, 2.5)
		require.True(t, ok, name)
		require.InDelta(t, c.want, v.Mid, 1e-12, name)
		require.LessOrEqual(t, v.Low, v.Mid, name)
		require.Greater(t, v.High, v.Mid, name)
	}
	fine, coarse := StandIn{4, 3.3}, StandIn{8, 4}
	slow, _ := FullGrid(Aged, fine, coarse, 2.5)
	equal, _ := FullGrid(Aged, fine, coarse, 0)
	require.Greater(t, slow.Low, 2., "a slow machine may be the reason")
	require.InDelta(t, 1+2.3/16, equal.Low, 1e-12, "old faces are")
	nan := nullable.NaN()
	for _, c := range [][2]StandIn{
		{{4, nan}, {8, 1}}, {{4, 1}, {8, nan}}, {{8, 1}, {4, 1}}, {{0, 1}, {8, 1}}, {{4, 0}, {8, 1}}, {{4, -1}, {8, 1}},
		{{4, nullable.Number(math.Inf(1))}, {8, 1}},
	} {
		_, ok := FullGrid(Aged, c[0], c[1], 0)
		require.False(t, ok, "%v", c)
	}
}

// For drawn ratios an estimate is between the ideal time and the time on the finer stand-in, or its bounds contain that,
// and the bounds are finite.
func TestFullGridOfDrawnRatios(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := Growth(rapid.IntRange(0, int(Unknown)).Draw(t, "growth"))
		side := rapid.IntRange(1, 64).Draw(t, "side")
		here := rapid.Float64Range(0.5, 1e6).Draw(t, "fine")
		there := rapid.Float64Range(0.5, 1e6).Draw(t, "coarse")
		v, ok := FullGrid(how, StandIn{side, nullable.Number(here)}, StandIn{2 * side, nullable.Number(there)},
			rapid.Float64Range(0, 10).Draw(t, "unequal"))
		require.True(t, ok)
		require.GreaterOrEqual(t, v.Mid, min(1, here))
		require.LessOrEqual(t, v.Low, v.Mid)
		require.Less(t, v.Mid, v.High)
		require.False(t, math.IsInf(v.High, 0) || math.IsNaN(v.High))
		if how != Linear {
			require.LessOrEqual(t, v.Mid, here)
		}
	})
}

// Without a coarser grid the time is that of the stand-in, and its bounds are unknown.
func TestOnFullGrid(t *testing.T) {
	s := Simulated{Converged: true, Met: 8}
	s.Against(Alone{Seconds: 8}, 2)
	coarse := s
	coarse.Efficiency = 1. / 3
	s.OnFullGrid(Aged, 4, 8, nil, 0, 0)
	require.Equal(t, nullable.Number(8), s.Comparable)
	require.False(t, s.ComparableLow.Known() || s.ComparableHigh.Known())
	s.OnFullGrid(Aged, 4, 8, &coarse, 0, 0) // an excess of 1 instead of 2
	require.InDelta(t, 4*1.25, float64(s.Comparable), 1e-12)
	require.InDelta(t, 0.8, float64(s.Efficiency), 1e-12)
	wide := s
	wide.Against(Alone{Seconds: 8}, 2)
	wide.OnFullGrid(Aged, 4, 8, &coarse, 0, 0.5)
	require.InDelta(t, float64(s.ComparableHigh)+0.5*4*1.25, float64(wide.ComparableHigh), 1e-12)
	require.GreaterOrEqual(t, float64(wide.ComparableLow), 0.)
}

// Times that were simulated are not compared with estimates, and not with those of methods whose sweeps grow otherwise.
func TestVerdictWithoutEstimates(t *testing.T) {
	row := func(method, scheme string, met, mid, low float64) SimulatedRow {
		return SimulatedRow{Method: method, Simulated: Simulated{
			Scheme: scheme, Machines: 8, Converged: true, Met: nullable.Number(met), Comparable: nullable.Number(mid),
			ComparableLow: nullable.Number(low), ComparableHigh: nullable.Number(2*mid - low),
		}}
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		rows []SimulatedRow
		want string
	}{
		"one has no estimate": {[]SimulatedRow{row("richardson", "sync", 3, 1, 0.9), row("richardson", "async", 2, 2, nan)},
			"the network is full or the coarser stand-in was not solved: run --stand-in 1 (on stand-in 8, async is 1.50 times as " +
				"fast as sync)"},
		"no correction": {[]SimulatedRow{row("schwarz", "sync", 3, 3, 2.9), row("schwarz", "async", 4, 1, 0.9)},
			"no correction is known for schwarz: run --stand-in 1 (on stand-in 8, sync is 1.33 times as fast as async)"},
		"two methods": {[]SimulatedRow{row("sor", "sync", 3, 3, 2.9), row("multigrid", "sync", 6, 6, 5.9)},
			"the sweeps of sor and multigrid grow by different factors: run --stand-in 1"},
	} {
		s := SimulatedComparison{Subject: Subject{StandIn: 8, Coarser: 16}, Rows: c.rows, References: []Reference{{}}}
		s.Judge([]nullable.Number{1, 2}, []string{"schwarz"})
		require.True(t, s.Verdict.DependsOnStandIn, name)
		require.Contains(t, s.Verdict.Sentence, c.want, name)
		require.False(t, s.Verdict.SpreadKnown || s.Verdict.FactorLow.Known() || s.Verdict.FactorHigh.Known(), name)
		shown, err := json.Marshal(s.Verdict)
		require.NoError(t, err)
		require.Contains(t, string(shown), `"winner":null,`, name)
		require.Contains(t, string(shown), `"factor":null,`, name)
	}
}

// A verdict of a stand-in is refused where the bounds overlap, where they are unknown, and where the two stand-ins name
// different winners.
func TestVerdictOfAStandIn(t *testing.T) {
	row := func(scheme string, met, low, mid, high float64) SimulatedRow {
		return SimulatedRow{Method: "richardson", Simulated: Simulated{
			Scheme: scheme, Machines: 8, Converged: true, Met: nullable.Number(met), Comparable: nullable.Number(mid),
			ComparableLow: nullable.Number(low), ComparableHigh: nullable.Number(high),
		}}
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		sync, async SimulatedRow
		coarser     []nullable.Number
		depends     bool
		neither     bool
		want        string
	}{
		"decided": {row("sync", 4, 3.8, 4, 4.2), row("async", 3, 1.8, 2, 2.2), []nullable.Number{1, 0.9}, false, false,
			"on 8 peers, async is 2.00 (1.73 to 2.33) times as fast as sync (2 s, 1.8 to 2.2 against 4 s, 3.8 to 4.2)"},
		"overlap": {row("sync", 4, 3, 4, 5), row("async", 3, 2, 2, 3.5), []nullable.Number{1, 0.9}, true, false,
			"stand-ins 16 and 8 leave it open: run --stand-in 1, or 4"},
		"another winner as simulated": {row("sync", 4, 3.8, 4, 4.2), row("async", 4.5, 1.8, 2, 2.2),
			[]nullable.Number{1, 0.9}, true, false, "run --stand-in 1, or 4"},
		"another winner on the coarser": {row("sync", 4, 3.8, 4, 4.2), row("async", 3, 1.8, 2, 2.2),
			[]nullable.Number{0.9, 1}, true, false, "run --stand-in 1, or 4"},
		"no coarser grid": {row("sync", 4, nan, 4, nan), row("async", 3, nan, 3, nan),
			[]nullable.Number{nullable.NaN(), nullable.NaN()}, true, false,
			"there is no estimate for the full grid, as the network is full or the coarser stand-in was not solved: run " +
				"--stand-in 1 (on stand-in 8, async is 1.33 times as fast as sync)"},
		"equal": {row("sync", 4, 3.9, 4, 4.1), row("async", 4.1, 3.9, 4.05, 4.2), []nullable.Number{1, 1.1}, false, true,
			"differ too little for stand-ins 16 and 8 (factor 1.01 (0.95 to 1.08)): neither is faster"},
	} {
		s := SimulatedComparison{Subject: Subject{StandIn: 8, Coarser: 16}, Rows: []SimulatedRow{c.sync, c.async},
			References: []Reference{{}}}
		s.Judge(c.coarser, nil)
		require.NotNil(t, s.Verdict, name)
		require.Equal(t, c.depends, s.Verdict.DependsOnStandIn, name)
		require.Equal(t, c.depends, !s.Verdict.Factor.Known() && !s.Verdict.FactorLow.Known() && !s.Verdict.FactorHigh.Known(), name)
		require.Equal(t, c.depends, s.Verdict.Fastest == nil && s.Verdict.Against == nil, name)
		if c.depends {
			require.Empty(t, s.Verdict.Reasons, name)
			require.False(t, s.Verdict.SweepRatio.Known() || s.Verdict.CostRatio.Known(), name)
		}
		require.Contains(t, s.Verdict.Sentence, c.want, name)
		if c.neither {
			require.True(t, s.Verdict.WithinSpread, name)
		}
		require.Equal(t, c.depends || c.neither, s.Verdict.Winner == nil, name)
	}
}

func candidate(method, scheme string, peers int, low, seconds, high float64) Candidate {
	return Candidate{
		Method: method, Scheme: scheme, Peers: peers, Seconds: nullable.Number(seconds), Low: nullable.Number(low),
		High: nullable.Number(high), Lockstep: scheme == "sync",
	}
}

func TestBestOf(t *testing.T) {
	nan := math.NaN()
	all := []Candidate{
		candidate("richardson", "sync", 4, 9, 9, 9), candidate("richardson", "async", 4, 3, 3, 3),
		candidate("multigrid", "sync", 4, 2, 2, 2), candidate("multigrid", "sync", 2, 0.5, 0.5, 0.5),
		candidate("schwarz", "async", 4, nan, nan, nan), candidate("multigrid", "sync", 1, 1, 1, 1),
	}
	b := BestOf(all, "")
	require.Equal(t, &all[2], b.Synchronous)
	require.Equal(t, &all[1], b.Asynchronous)
	require.Equal(t, "best synchronous: multigrid, sync, 2 s; best asynchronous: richardson, async, 3 s; one peer alone: "+
		"multigrid, sync, 1 s. One peer alone is the fastest", b.Sentence)
	b = BestOf(all[:3], "")
	require.Nil(t, b.One)
	require.Contains(t, b.Sentence, "The fastest is multigrid, sync on 4 peers")
	require.Nil(t, BestOf(nil, ""))
	require.Nil(t, BestOf(all[5:], ""), "nothing but one peer")
}

// On stand-ins the fastest is named only if no other candidate can be faster.
func TestBestOfStandIns(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		all  []Candidate
		want string
		not  string
	}{
		"decided": {[]Candidate{candidate("multigrid", "sync", 4, 1, 1.2, 1.4), candidate("schwarz", "async", 4, 2, 3, 4)},
			"1.2 s (1 to 1.4); best asynchronous: schwarz, async, 3 s (2 to 4). The fastest is multigrid", "open"},
		"overlap": {[]Candidate{candidate("multigrid", "sync", 4, 1, 1.2, 2.4), candidate("schwarz", "async", 4, 2, 3, 4)},
			"Stand-ins 8 and 4 leave open which is the fastest: run --stand-in 1", "The fastest is"},
		"no bounds": {[]Candidate{candidate("multigrid", "sync", 4, 1, 1.2, 1.4),
			candidate("schwarz", "async", 4, nan, 3, nan)},
			"leave open which is the fastest", "The fastest is"},
		"another of the same kind": {[]Candidate{candidate("multigrid", "sync", 4, 1, 1.2, 1.4),
			candidate("schwarz", "sync", 4, 1.3, 2, 3)}, "leave open which is the fastest", "The fastest is"},
		"one, then open": {[]Candidate{candidate("multigrid", "sync", 4, 1, 1.2, 2.4),
			candidate("schwarz", "async", 4, 2, 3, 4), candidate("multigrid", "sync", 1, 0.1, 0.2, 0.3)},
			"One peer alone is the fastest, and stand-ins 8 and 4 leave open which is the second: run --stand-in 1", "known"},
	} {
		b := BestOf(c.all, "8 and 4")
		require.Contains(t, b.Sentence, c.want, name)
		require.NotContains(t, b.Sentence, c.not, name)
	}
	unbounded := BestOf([]Candidate{candidate("multigrid", "sync", 4, nan, 1.2, nan), candidate("schwarz", "async", 4, 2, 3, 4)}, "8")
	require.Contains(t, unbounded.Sentence, "multigrid, sync, 1.2 s (without bounds)")
	require.Contains(t, unbounded.Sentence, ". Stand-in 8 leaves open which is the fastest: run --stand-in 1")
	u := candidate("schwarz", "sync", 4, 1, 2, 3)
	u.Uncorrected = true
	require.Contains(t, BestOf([]Candidate{u}, "8 and 4").Sentence,
		". For schwarz no correction for the full grid is known: the times are those of the stand-in")
	u.OnStandIns(1.9, 2.1, 1.5)
	require.InDelta(t, 1.4, float64(u.Low), 1e-12)
	require.InDelta(t, 2.6, float64(u.High), 1e-12)
	u.OnStandIns(1.9, 2.1, nullable.NaN())
	require.False(t, u.Low.Known() || u.High.Known())
}

// A LaTeX table of stand-ins has the bounds of the times, and a row that was refused as many cells.
func TestLatexOfStandIns(t *testing.T) {
	c := SimulatedComparison{Subject: Subject{StandIn: 4, N: []int{8}}, Rows: []SimulatedRow{
		{Method: "richardson", Simulated: Simulated{
			Scheme: "sync", Machines: 2, Met: 3, Comparable: 2.5, ComparableLow: 2.25, ComparableHigh: 2.75,
		}},
		{Method: "schwarz", Simulated: Simulated{Scheme: "async", Machines: 2, Reason: ReasonRefused}},
	}}
	var out strings.Builder
	require.NoError(t, c.Latex(&out))
	require.Contains(t, out.String(), "comparable & at least & at most &")
	require.Contains(t, out.String(), "2.5 & 2.25 & 2.75 &")
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "&") {
			require.Equal(t, 12, strings.Count(line, "&"), line)
		}
	}
}
