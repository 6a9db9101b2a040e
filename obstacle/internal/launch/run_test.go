package launch

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

var (
	update  = flag.Bool("update", false, "write the golden files")
	oneSeed = flag.Int64("seed", -1, "play the run of this seed only")
)

// fail ends a test with the transcript and the command that repeats it.
func (w *world) fail(why string) {
	w.t.Helper()
	require.Fail(w.t, why, "%s\ngo test ./obstacle/internal/launch -run '%s' -seed %d", w.String(), w.t.Name(), w.seed)
}

// requireGolden compares the transcript with a golden file.
func (w *world) requireGolden(name string) {
	file := filepath.Join("testdata", "transcripts", strings.NewReplacer(", ", "-", " ", "-").Replace(name)+".txt")
	if *update {
		require.NoError(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(w.t, os.WriteFile(file, []byte(w.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(w.t, err)
	a, b := strings.Split(string(want), "\n"), strings.Split(w.String(), "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			after := b[min(i, len(b)):min(i+5, len(b))]
			require.Equal(w.t, a[i:min(i+5, len(a))], after, "line %d of %s; -update writes the file", i+1, file)
		}
	}
	require.Len(w.t, b, len(a))
}

// spare lets a process join that is not needed.
func (w *world) spare(host string) {
	a := w.connect(host, 0, -1)
	a.say(event{joined: &a.caller})
}

// A run that fails while nobody has the place of a lost peer ends as soon as the others have sent their results.
func TestNobodyIsAwaitedInAnEmptyPlace(t *testing.T) {
	w := worldOf(t, 1, nil)
	w.kill(1)
	for len(w.r.losses) == 0 {
		w.deliver()
	}
	w.handle(event{asked: toEnd})
	w.r.ended = false
	for w.deliver() {
	}
	require.True(t, w.r.finished())
}

// inTime makes the problem one with three time steps.
func inTime(p *Plan) {
	var err error
	if p.ProblemSpec, err = file.Open(nil, "front1d", []string{"steps=3", "end=1"}); err == nil {
		p.Problem, err = p.ProblemSpec.BuildValid([]int{4})
	}
	if err == nil {
		p.Partition, err = problem.Slabs(p.Problem.N, 4, nil)
	}
	if err != nil {
		panic(err)
	}
}

// steps lets some time steps end.
func (w *world) steps(n int) {
	for range 1000 {
		if w.series.done >= n {
			return
		}
		w.tick()
		for w.deliver() {
		}
	}
	w.fail("time steps do not end")
}

// spawning lets a run start processes.
func spawning(p *Plan) {
	p.Spawn = func(context.Context, int, string) (Child, error) { return nil, nil }
}

// Each transcript holds all that a run decides, in order.
func TestTranscripts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Plan)
		begin  func(t *testing.T, seed uint64, change func(p *Plan)) *world // nil: all relax
		play   func(w *world)
	}{
		"start": {begin: gatheringWorld, play: func(*world) {}},
		"start of processes of several parts": {begin: gatheringWorld, change: func(p *Plan) { p.Parts = 2; spawning(p) },
			play: func(*world) {}},
		"loss before the start": {begin: gatheringWorld, play: func(w *world) {
			for w.r.joining {
				w.deliver()
			}
			w.kill(1)
		}},
		"loss": {play: func(w *world) { w.kill(1) }},
		"loss, a spare process waits": {play: func(w *world) {
			w.spare("host 2")
			w.settle()
			w.kill(1)
		}},
		"loss, a process can be started":     {change: spawning, play: func(w *world) { w.kill(1) }},
		"loss of a process of several parts": {change: func(p *Plan) { p.Parts = 2 }, play: func(w *world) { w.kill(3) }},
		"loss of a process of several parts, a process can be started": {
			change: func(p *Plan) { p.Parts = 2; spawning(p) }, play: func(w *world) { w.kill(3) }},
		"loss, exact": {change: func(p *Plan) { p.Recover = rendezvous.RecoverExact }, play: func(w *world) {
			for range 100 {
				w.tick()
			}
			w.settle()
			w.kill(2)
		}},
		"loss of a survivor during a recovery": {play: func(w *world) {
			w.kill(1)
			for range 4 {
				w.deliver()
			}
			w.kill(2)
		}},
		"loss, keepers": {change: func(p *Plan) { p.Keepers = 3 }, play: func(w *world) {
			w.settle()
			w.kill(2)
		}},
		"silence": {play: func(w *world) {
			w.actors[1].silent = true
			for len(w.r.losses) == 0 {
				w.tick()
				w.settle()
			}
		}},
		"a process leaves": {change: func(p *Plan) { p.Elastic = true }, play: func(w *world) {
			w.spare("host 2")
			w.settle()
			w.actors[3].send(rendezvous.Leave{})
			for len(w.r.moves) == 0 {
				w.tick()
				w.settle()
			}
		}},
		"a broken path": {play: func(w *world) {
			w.actors[0].send(rendezvous.Unreachable{Rank: 2, Why: "no word"})
		}},
		"too many losses": {play: func(w *world) {
			for range maxFruitless + 1 {
				w.kill(1)
				w.settle()
			}
		}},
		"loss while results arrive": {play: func(w *world) {
			for _, a := range w.actors {
				a.finish(Converged)
			}
			for w.r.members[0].result == nil {
				w.deliver()
			}
			w.kill(3)
		}},
		"loss, the spare process is lost, too": {play: func(w *world) {
			w.spare("host 2")
			w.spare("host 3")
			w.settle()
			w.actors[w.r.spares[0].conn-1].closed = true
			w.kill(1)
		}},
		"no recovery": {change: func(p *Plan) { p.Recover = "off" }, play: func(w *world) { w.kill(1) }},
		"loss in a time step": {change: inTime, play: func(w *world) {
			w.steps(2)
			w.kill(2)
		}},
		"loss of the leader": {change: func(p *Plan) { p.Keepers = 3 }, play: func(w *world) {
			w.settle()
			w.succeed()
		}},
		"loss of the leader and of a peer": {change: func(p *Plan) { p.Keepers = 3 }, play: func(w *world) {
			w.settle()
			w.kill(2)
			w.succeed()
		}},
		"loss of the leader in a time step": {change: func(p *Plan) { inTime(p); p.Keepers = 3 }, play: func(w *world) {
			w.steps(2)
			w.settle()
			w.succeed()
		}},
		"a request to stop": {play: func(w *world) { w.handle(event{asked: toStop}) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.begin == nil {
				c.begin = worldOf
			}
			w := c.begin(t, 1, c.change)
			w.tick()
			c.play(w)
			w.settle()
			w.over()
			w.requireGolden(name)
		})
	}
}

// Whatever happens to its peers, a run goes on or ends. Losses, silences, broken paths and processes that join or leave
// meet in any order.
func TestRunsGoOnOrEnd(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		if *oneSeed >= 0 && seed != uint64(*oneSeed) {
			continue
		}
		w := randomWorld(t, seed)
		for range 1 + w.rand.IntN(6) {
			w.fault()
			for range w.rand.IntN(40) {
				if w.rand.IntN(10) == 0 || !w.deliver() {
					w.tick()
				}
			}
		}
		w.settle()
		w.over()
	}
}

func randomWorld(t *testing.T, seed uint64) *world {
	bits := rand.New(rand.NewPCG(seed, 2)).Uint64()
	begin := worldOf
	if bits&(1<<8) != 0 {
		begin = gatheringWorld
	}
	return begin(t, seed, func(p *Plan) {
		if vary(p, bits); bits&96 == 0 {
			inTime(p)
		}
	})
}

// fault lets something happen to a peer.
func (w *world) fault() {
	m := w.r.members[w.rand.IntN(len(w.r.members))]
	switch w.rand.IntN(8) {
	case 0, 1:
		w.kill(m.rank)
	case 2:
		w.spare(fmt.Sprintf("host %d", w.rand.IntN(4)))
	case 3:
		if m.conn != 0 {
			w.actors[m.conn-1].send(rendezvous.Leave{})
		}
	case 4:
		if m.conn != 0 {
			other := w.rand.IntN(len(w.r.members))
			w.actors[m.conn-1].send(rendezvous.Unreachable{Epoch: w.r.epoch, Rank: other, Why: "no word"})
		}
	case 7:
		for _, s := range w.r.spares {
			w.actors[s.conn-1].closed = true
		}
	case 6:
		if w.r.kept && w.r.failure == nil && !w.r.returning {
			w.succeed()
		}
	case 5:
		w.silence(m)
	}
}

// A process of two parts is lost before the start when both have joined. The process that replaces it runs both.
func TestBothPartsAreReplacedBeforeTheStart(t *testing.T) {
	for seed := range uint64(20) {
		w := gatheringWorld(t, seed, func(p *Plan) { p.Parts = 2; spawning(p) })
		for w.r.members[0].conn == 0 || w.r.members[1].conn == 0 {
			if !w.deliver() {
				w.tick()
			}
		}
		w.kill(0)
		w.settle()
		require.Nil(t, w.r.failure, "seed %d\n%s", seed, w.String())
		w.over()
	}
}
