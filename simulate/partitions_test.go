package simulate

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

var partitions = flag.Int("partitions", 400, "runs with partitions and lost keepers; -short makes a tenth")

// troubled adds cuts, losses of the launcher and losses of peers, which may be keepers, at random times of a run.
func troubled(random *rand.Rand, m *cluster.Model, length time.Duration) {
	at := func() time.Duration { return time.Duration(random.Int64N(int64(length))) }
	for range 1 + random.IntN(2) {
		e := cluster.Event{At: at(), Launcher: random.IntN(2) == 0}
		for rank := range m.Hosts {
			if random.IntN(2) == 0 {
				e.Apart = append(e.Apart, rank)
			}
		}
		if random.IntN(3) > 0 {
			e.Until = e.At + 1 + at()/2
		}
		if len(e.Apart) > 0 || e.Launcher {
			m.Events = append(m.Events, e)
		}
	}
	for range random.IntN(3) {
		e := cluster.Event{At: at(), Killed: random.IntN(2) == 0}
		e.Lost = !e.Killed
		if e.Rank = random.IntN(len(m.Hosts)+3) - 3; e.Rank < 0 {
			e.Launcher, e.Rank = true, 0
		}
		m.Events = append(m.Events, e)
	}
}

// However the network breaks and whichever keepers are lost, at most one process leads the run at a time, at most one
// side gets a verdict, and the verdict is right. A run without a verdict ends with the reason.
func TestPartitions(t *testing.T) {
	n := *partitions
	if testing.Short() {
		n /= 10
	}
	var converged, elected, replaced, cutOff, ended int
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		m := gigabit(6)
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 800
		}
		s := iterate.Synchronous()
		if seed%2 == 0 {
			s = iterate.Asynchronous()
		}
		run := runOf(t, m, membrane(5), s, 6)
		run.Seed = uint64(seed)
		run.Recover = &Recovery{
			Suspect: 100 * time.Millisecond, Spares: random.IntN(5), Keepers: []int{1, 3, 5}[random.IntN(3)],
			Exact: s.Lockstep() && random.IntN(2) == 0,
		}
		troubled(random, m, time.Second)
		r, err := Run(context.Background(), run)
		requireOneRun(t, r)
		for _, l := range r.Leaders {
			elected++
			require.True(t, l.Led == 0 || l.Led >= l.Elected, "seed %d", seed)
		}
		replaced, cutOff = replaced+len(r.Losses), cutOff+len(r.CutOff)
		if err != nil {
			ended++
			require.Regexp(t, "reaches most keepers|reaches no peer|no peer is left|last machine is lost|\\(one keeper\\)", err.Error())
			require.False(t, strings.HasSuffix(err.Error(), "(one keeper)") && run.Recover.Keepers > 1, "seed %d: %v", seed, err)
			continue
		}
		converged++
		require.Equal(t, iterate.Converged, r.Reason, "seed %d", seed)
		require.LessOrEqual(t, r.Residual, run.Solver.Tolerance, "seed %d", seed)
	}
	t.Logf("%d converged, %d ended; %d leaders elected, %d peers replaced, %d processes cut off", converged, ended, elected,
		replaced, cutOff)
	for _, count := range []int{converged, elected, replaced, cutOff, ended} {
		require.GreaterOrEqual(t, 20*count, n)
	}
}
