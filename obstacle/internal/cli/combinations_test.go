package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// combinations returns arguments of solve: every method with every scheme, and other flags that a peer may refuse.
func combinations() (out [][]string) {
	for _, method := range []string{problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz} {
		for _, scheme := range []string{"sync", "async", "delay:0", "delay:2", "hybrid"} {
			for _, partition := range []string{"slabs", "boxes"} {
				for _, clusters := range []string{"0", "1", "2", "4"} {
					for _, more := range [][]string{
						{}, {"--order", "in-turn"}, {"--balance", "on"}, {"--flexible"}, {"--local", "sor", "--overlap", "0", "--coarse", "none"},
						{"--inner-cycles", "2", "--coarse", "3", "--overlap", "8"}, {"--omega", "1.5"}, {"--step", "0.5"}, {"--cycle", "w"}, {"--sweeps-per-pass", "2"},
					} {
						for _, peers := range []string{"1", "2", "4"} {
							out = append(out, append([]string{"--method", method, "--scheme", scheme, "--partition", partition,
								"--clusters", clusters, "--peers", peers}, more...))
						}
					}
				}
			}
		}
	}
	return out
}

// requestOf parses arguments as solve does.
func requestOf(t *testing.T, args []string) *request {
	t.Helper()
	q := &request{catalog: catalog.New()}
	f := pflag.NewFlagSet("solve", pflag.ContinueOnError)
	q.flags(f)
	f.StringVar(&q.Scheme, "scheme", "sync", "")
	f.IntVar(&q.peers, "peers", 0, "")
	require.NoError(t, f.Parse(args))
	return q
}

// Every combination is either refused as bad usage, with a reason, or accepted by every peer, with its clusters.
func TestCombinationsAreRefusedBeforeTheStart(t *testing.T) {
	all, least := combinations(), 2000
	if testing.Short() { // every seventh: it combines every value of a flag with those of the others
		for i := range len(all) / 7 {
			all[i] = all[7*i]
		}
		all, least = all[:len(all)/7], least/7
	}
	accepted := 0
	for _, prob := range []string{"membrane", "front1d"} {
		for _, args := range all {
			name := prob + " " + strings.Join(args, " ")
			q := requestOf(t, append(args, "--n", "7", "--threads", "1"))
			w, err := q.resolve(prob)
			if err != nil {
				require.Equal(t, ExitUsage, exitCode(err), name)
				require.NotEmpty(t, err.Error(), name)
				continue
			}
			accepted++
			for rank := range w.peers {
				c := problem.Config{
					Problem: w.problem, Partition: w.partition, Rank: iterate.Rank(rank), Scheme: w.scheme, Order: w.order, Method: w.method,
					Tolerance: q.Tolerance, Balance: w.balance == "on", Reconfigure: true,
				}
				if w.label != nil && q.Scheme == "hybrid" { // as peer.join does
					labels := make([]string, w.peers)
					for r := range labels {
						labels[r], err = w.label(r, "", nil)
						require.NoError(t, err)
					}
					c.Scheme, err = q.catalog.Scheme(q.Scheme, labels)
					require.NoError(t, err)
				}
				_, err := solver.New(c)
				require.NoError(t, err, name)
			}
		}
	}
	require.Greater(t, accepted, least)
}

// obstacle runs the program in this process.
func obstacle(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(context.Background(), args, catalog.New(), strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// Hybrid with a method of the whole grid means Schwarz with that method, unless there is one cluster.
func TestHybridOfWholeGridMethods(t *testing.T) {
	for _, method := range []string{"sor", "multigrid"} {
		for clusters, want := range map[string]string{"1": method, "2": "schwarz"} {
			code, out, stderr := obstacle(t, "solve", "membrane", "--n", "9", "--method", method, "--scheme", "hybrid", "--clusters", clusters,
				"--peers", "2", "--in-process", "--format", "json")
			require.Equal(t, ExitSolved, code, stderr)
			var got struct {
				Method    string
				Converged bool
			}
			require.NoError(t, json.Unmarshal([]byte(out), &got))
			require.True(t, got.Converged)
			require.Equal(t, want, got.Method)
		}
	}
}

// compare has a row for a contradictory combination, and solves the others.
func TestCompareHasRowsForWhatIsRefused(t *testing.T) {
	type rows struct {
		Rows []struct {
			Method, Scheme string
			Peers          int
			Seconds        *float64
			Messages       *uint64
			Converged      bool
			Why            string
		}
	}
	small := []string{"compare", "membrane", "--n", "7", "--in-process", "--rounds", "1"}
	code, out, stderr := obstacle(t, append(small, "--method", "multigrid", "--clusters", "2", "--peers", "2", "--format", "json")...)
	require.Equal(t, ExitSolved, code, stderr)
	require.Contains(t, out, `"scheme":"hybrid"`)

	code, out, _ = obstacle(t, append(small, "--methods", "schwarz,sor", "--clusters", "2", "--peers", "1,2", "--scheme", "async", "--flexible", "--format", "json")...)
	require.Equal(t, ExitUsage, code)
	var got rows
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Rows, 6)
	refused := 0
	for _, r := range got.Rows {
		require.Equal(t, r.Converged, r.Why == "")
		require.Equal(t, r.Converged, r.Seconds != nil)
		require.Equal(t, r.Converged, r.Messages != nil)
		if !r.Converged {
			refused++
			require.Contains(t, r.Why, "--clusters 2 with 1 peers")
		}
	}
	require.Equal(t, 2, refused)
	code, out, _ = obstacle(t, append(small, "--clusters", "2", "--peers", "1,2", "--scheme", "async")...)
	require.Equal(t, ExitUsage, code)
	require.Contains(t, out, "not solved: richardson, async, --peers 1: --clusters 2 with 1 peers")

	code, out, _ = obstacle(t, append(small, "--peers", "2", "--max-sweeps", "3", "--format", "json")...)
	require.Equal(t, ExitStopped, code)
	require.Contains(t, out, `"why":"stopped before the tolerance: sweeps"`)
	for _, wrong := range [][]string{{"--scheme", "sink"}, {"--methods", "sor,soor"}, {"--peers", "0"}, {"--n", "x"}, {"--order", "in-turn", "--method", "sor"}} {
		code, out, stderr = obstacle(t, append(small, wrong...)...)
		require.Equal(t, ExitUsage, code, wrong)
		require.Empty(t, out, wrong)
		require.NotEmpty(t, stderr)
	}
}

// A selection of the accepted combinations is solved over sockets.
func TestCombinationsAreSolved(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	ran := map[string]int{}
	for i, args := range combinations() {
		if i%31 != 0 && !(strings.Contains(fmt.Sprint(args), "hybrid") && i%11 == 0) {
			continue
		}
		code, out, stderr := obstacle(t, append([]string{"solve", "membrane", "--n", "7", "--in-process", "--tol", "1e-4", "--max-time", "20s", "--format", "json"}, args...)...)
		require.Contains(t, []int{ExitSolved, ExitUsage}, code, "%v\n%s%s", args, out, stderr)
		if ran[fmt.Sprint(code)]++; code == ExitUsage {
			require.Empty(t, out)
			require.NotEmpty(t, stderr)
		}
	}
	require.Greater(t, ran["0"], 50)
	require.Greater(t, ran["2"], 10)
}

// Without --method, whatever is accepted with one of the methods is accepted, and the chosen method is among those.
func TestChosenMethodIsNotRefused(t *testing.T) {
	more := [][]string{
		{}, {"--balance", "on"}, {"--recover", "exact"}, {"--parts", "2"}, {"--parts", "2", "--balance", "on"}, {"--threads", "2"},
		{"--slowdown", "0:2"}, {"--step-mode", "never"}, {"--order", "in-turn"},
	}
	chosen := map[string]int{}
	for _, prob := range []string{"membrane", "front1d"} {
		for _, scheme := range []string{"sync", "async", "delay:0", "delay:2", "hybrid"} {
			for _, partition := range []string{"auto", "slabs", "boxes"} {
				for _, clusters := range []string{"0", "1", "2", "4"} {
					for _, peers := range []string{"0", "1", "2", "4"} {
						for _, flags := range more {
							args := append([]string{"--n", "7", "--scheme", scheme, "--partition", partition, "--clusters", clusters,
								"--peers", peers}, flags...)
							w, err := requestOf(t, args).resolve(prob)
							if err == nil {
								chosen[w.method.Name]++
								require.NotEmpty(t, w.methodWhy)
								require.NotContains(t, w.balance, "the method is", args)
								continue
							}
							require.Equal(t, ExitUsage, exitCode(err))
							for _, name := range []string{problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz} {
								_, other := requestOf(t, append(args, "--method", name)).resolve(prob)
								require.Error(t, other, "%s: %v; auto: %v", name, args, err)
							}
						}
					}
				}
			}
		}
	}
	for _, name := range []string{problem.Richardson, problem.SOR, problem.Schwarz} { // 7 points do not need multigrid
		require.Positive(t, chosen[name], name)
	}
}
