package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// compare draws every solved row and gives a verdict of the same run in text and JSON.
func TestCompareGivesAVerdict(t *testing.T) {
	args := []string{"compare", "membrane", "--n", "16", "--model", "graphene-eth", "--machines", "1,4", "--scheme",
		"sync,async"}
	code, out, errs := call(append(args, "--format", "json")...)
	require.Zero(t, code, errs)
	var c report.SimulatedComparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.NotNil(t, c.Verdict)
	require.Equal(t, 4, c.Verdict.Peers)
	times := map[string]float64{}
	for _, r := range c.Rows {
		if r.Machines == 4 {
			times[r.Scheme] = float64(r.Comparable)
		}
	}
	require.Less(t, times[*c.Verdict.Winner], times[*c.Verdict.Against])
	require.InEpsilon(t, times[*c.Verdict.Against]/times[*c.Verdict.Winner], float64(c.Verdict.Factor), 1e-9)
	require.False(t, c.Verdict.WithinSpread)
	_, text, _ := call(args...)
	require.Contains(t, text, c.Verdict.Sentence)
	require.Regexp(t, `(?m)^sync +4 +█`, text)
	require.Regexp(t, `(?m)^async +4 +█`, text)
}

func TestCompareOfRealRuns(t *testing.T) {
	args := []string{"compare", "membrane", "--n", "8", "--in-process", "--peers", "2", "--rounds", "2"}
	code, out, errs := call(append(args, "--format", "json")...)
	require.Zero(t, code, errs)
	var c comparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.NotNil(t, c.Verdict)
	require.Equal(t, 2, c.Verdict.Peers)
	require.True(t, c.Verdict.SpreadKnown)
	require.Contains(t, out, `"idle_share":null`)
	_, text, _ := call(append(args, "--color", "always")...)
	require.Contains(t, text, "\x1b[1mon 2 peers, ")
	require.Regexp(t, `(?m)^async +2 +[▁▂▃▄▅▆▇█]`, text)
}

// compare names the best synchronous and the best asynchronous run, and the best one of one peer, of methods that were
// not asked for, too.
func TestCompareNamesTheBestMethods(t *testing.T) {
	code, out, errs := call("compare", "membrane", "--n", "16", "--model", "grid-10ms", "--machines", "2,4", "--format",
		"json")
	require.Zero(t, code, errs)
	var simulated report.SimulatedComparison
	require.NoError(t, json.Unmarshal([]byte(out), &simulated))
	require.Len(t, simulated.Rows, 6, "rows of the method asked for only")
	b := simulated.Best
	require.Equal(t, "multigrid", b.One.Method)
	require.Equal(t, []int{4, 4, 1}, []int{b.Synchronous.Peers, b.Asynchronous.Peers, b.One.Peers})
	require.NotEqual(t, "richardson", b.Synchronous.Method)
	require.Less(t, float64(b.One.Seconds), float64(min(b.Synchronous.Seconds, b.Asynchronous.Seconds)))
	require.Contains(t, b.Sentence, "One peer alone is the fastest")

	code, out, errs = call("compare", "membrane", "--n", "8", "--in-process", "--peers", "2", "--rounds", "1",
		"--slowdown", "1:4", "--format", "json")
	require.Zero(t, code, errs)
	var c comparison
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.NotNil(t, c.Best.One)
	require.NotNil(t, c.Best.Synchronous)
	require.NotNil(t, c.Best.Asynchronous)
	require.InDelta(t, 1.25, float64(c.Rows[1].Together), 1e-12)
	require.InEpsilon(t, float64(c.Rows[0].Seconds/c.Rows[1].Seconds/1.25), float64(c.Rows[1].Efficiency), 1e-9)
	code, out, errs = call("compare", "membrane", "--n", "8", "--in-process", "--peers", "2", "--rounds", "1",
		"--slowdown", "1:4")
	require.Zero(t, code, errs)
	require.Contains(t, out, "as fast as all together, 1.25 of 2")
	require.Contains(t, out, "one peer alone: ")
}

// compare tries FAS, whether or not the grid halves.
func TestCompareTriesFAS(t *testing.T) {
	for _, n := range []string{"15", "16"} {
		code, out, errs := call("compare", "membrane", "--n", n, "--model", "graphene-eth", "--machines", "2", "--methods",
			"multigrid", "--scheme", "sync", "--format", "json")
		require.Zero(t, code, errs)
		var c report.SimulatedComparison
		require.NoError(t, json.Unmarshal([]byte(out), &c))
		require.Equal(t, "fas", c.Best.Asynchronous.Method, "--n %s", n)
		require.Equal(t, "multigrid", c.Best.One.Method, "--n %s", n)
	}
	require.Contains(t, bestMethods(nil), schemesOf{"fas", []string{"sync", "async"}})
}

func TestIdleShare(t *testing.T) {
	s := &report.Solution{Peers: 2, Threads: 2,
		PerPeer: []report.Peer{{Seconds: 1, CPUSeconds: 2}, {Seconds: 1, CPUSeconds: 1}}}
	require.InDelta(t, 0.25, float64(idleShare(s)), 1e-12)
	s.InProcess = true
	require.False(t, idleShare(s).Known())
	require.False(t, idleShare(&report.Solution{}).Known())
}
