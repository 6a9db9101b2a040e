package solver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// single is a run of one peer that is driven operation by operation.
type single struct {
	peer   Block
	points int // of the grid
	work   int // points relaxed
	now    time.Duration
}

func newSingle(t require.TestingT, c Config) *single {
	p, err := New(c)
	require.NoError(t, err)
	return &single{peer: p, points: c.Problem.Points()}
}

// step does an operation, and reports whether the run goes on.
func (a *single) step(t require.TestingT) bool {
	a.now += time.Millisecond
	switch op := a.peer.Next(a.now); op.Kind {
	case OpRelax:
		a.work += op.Points
		a.peer.Relax(op)
	case OpDone:
		return false
	case OpFail:
		require.NoError(t, op.Err)
	}
	return true
}

// stopped relaxes so many times the grid, asks for the end, and returns how much work, in
// relaxations of the grid, follows.
func (a *single) stopped(t require.TestingT, after float64) float64 {
	for float64(a.work) < after*float64(a.points) {
		require.True(t, a.step(t), "the run has ended too soon")
	}
	before := a.work
	a.peer.Stop(a.now, Interrupted)
	for a.step(t) {
	}
	require.Equal(t, Interrupted, a.peer.Outcome().Reason)
	return float64(a.work-before) / float64(a.points)
}

// residual is that of the peer's solution.
func (a *single) residual(t require.TestingT, p *Problem) float64 {
	u := make([]float64, p.Points())
	a.peer.Solution(u)
	e, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	return e.RelativeResidual
}

// Peers in lockstep end at one iterate, one or two relaxations after the end was asked for,
// however seldom residuals are checked.
func TestAnEarlyEndInLockstepIsQuick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := membrane([3]int{8, 8, 24}, 3)
		peers := rapid.IntRange(1, 5).Draw(t, "peers")
		c := Config{
			Problem: p, Partition: slabsOf(t, p, peers), Tolerance: impossible,
			Scheme:     rapid.SampledFrom([]Scheme{Synchronous(), BoundedDelay(0)}).Draw(t, "scheme"),
			CheckEvery: Iteration(rapid.SampledFrom([]int{0, 1, 300}).Draw(t, "every")),
			Tiling:     Tiling{Sweeps: 1},
		}
		if rapid.Bool().Draw(t, "schwarz") {
			c.Method = MethodConfig{Name: Schwarz, Local: SOR, Work: 50, Coarse: rapid.SampledFrom([]int{-1, 30}).Draw(t, "coarse")}
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		// A relaxation takes longer than a message over the whole tree.
		n.perPoint = func(int, time.Duration) time.Duration { return 20 * time.Microsecond }
		n.stopAt, n.stopRank = time.Duration(rapid.IntRange(40, 2000).Draw(t, "stop"))*time.Millisecond, Rank(rapid.IntRange(0, peers-1).Draw(t, "rank"))
		known, root, work, heard := Iteration(0), Iteration(0), 0.0, false
		n.observe = func(n *network) {
			if wishes(n.peers[0]) && !heard {
				heard, root, work = true, n.peers[0].Outcome().Sweeps, n.peers[0].Outcome().Work
				for _, q := range n.peers {
					known = max(known, q.Outcome().Sweeps)
				}
			}
		}
		require.NoError(t, n.run())
		o := n.peers[0].Outcome()
		require.Equal(t, Interrupted, o.Reason)
		require.True(t, heard)
		require.LessOrEqual(t, o.Work, work+8, "local solves of 50 sweeps are cut short")
		// One ahead of the root for each face between, and the relaxation in progress.
		require.LessOrEqual(t, o.Sweeps, max(known+2, root+Iteration(peers)), "known when the newest iterate was %d", known)
		for r, q := range n.peers {
			require.Equal(t, o.Sweeps, q.Outcome().Sweeps, "rank %d", r)
			require.Equal(t, o.Reason, q.Outcome().Reason, "rank %d", r)
		}
	})
}

// wishes reports whether the root knows that an early end was asked for.
func wishes(p Block) bool {
	switch w := p.(type) {
	case *Worker:
		return w.wish != Running
	case *schwarz:
		return w.wish != Running
	}
	return false
}

// One peer does at most a relaxation of the grid once the end is asked for.
func TestAnEarlyEndOfRichardson(t *testing.T) {
	p := membrane([3]int{20, 20, 20}, 3)
	for _, every := range []Iteration{0, 1, 500} {
		c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-12, CheckEvery: every, Tiling: Tiling{Sweeps: 1}}
		for _, after := range []float64{1.5, 10, 47.2, 100} {
			a := newSingle(t, c)
			require.LessOrEqual(t, a.stopped(t, after), 1.0, "every %d, after %v", every, after)
			require.LessOrEqual(t, a.residual(t, p), 1.0)
		}
	}
}

// windy has a flow so strong on its grid that the safeguard rejects cycles.
func windy(n int) *Problem {
	p := membrane([3]int{n, n, n}, 3)
	p.Velocity[0].Value = 200 // central differences beyond Péclet 2
	p.Velocity[1].Value = -150
	p.Source.Value = 1
	return p
}

// A cycle of multigrid is left within two passes over the grid (a correction, a relaxation
// and what reads its residual are one pass over memory), wherever the end is asked for: in
// the full multigrid start, in a cycle, in the safeguard's relaxations. What remains is never
// worse than the start.
func TestAnEarlyEndWithinACycle(t *testing.T) {
	back := 0
	for name, p := range map[string]*Problem{"membrane": membrane([3]int{31, 31, 31}, 3), "rejected cycles": windy(15), "1-D": string1D(255)} {
		for _, m := range []MethodConfig{{Name: Multigrid}, {Name: Multigrid, Cycle: "v"}, {Name: SOR}} {
			c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, Method: m}
			worst := 0.0
			for after := 0.1; after < 12; after += 0.37 {
				a := newSingle(t, c)
				worst = max(worst, a.stopped(t, after))
				if mg, ok := a.peer.(*Levels).course.method.(*multigrid); ok && mg.stopped && mg.takesBack {
					back++
					requireSameBits(t, inside(mg, mg.keep), inside(mg, mg.u))
				}
				if m.Name == Multigrid && name == "membrane" {
					require.LessOrEqual(t, a.residual(t, p), 1.0, "%s after %v", name, after)
				}
			}
			limit := 3.5
			if m.Name == SOR {
				limit = 1
			}
			require.LessOrEqual(t, worst, limit, "%s %s", name, m.Name)
		}
	}
	require.Positive(t, back, "corrections that were not accepted are taken back")
}

// inside are the own points of a padded array.
func inside(m *multigrid, values []float64) []float64 {
	out := make([]float64, m.block.layout.Points())
	m.block.copyOut(out, values)
	return out
}

// Long relaxations by the safeguard end within one of them.
func TestAnEarlyEndOfRelaxations(t *testing.T) {
	p := windy(15)
	a := newSingle(t, Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, Method: MethodConfig{Name: Multigrid}})
	for a.peer.(*Levels).course.method.(*multigrid).sweeps < 100 {
		require.True(t, a.step(t), "the safeguard relaxes")
	}
	require.LessOrEqual(t, a.stopped(t, 0), 1.0)
}

// Peers that share the grid leave a cycle at the same place.
func TestAnEarlyEndWithinACycleOfSeveralPeers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := membrane([3]int{15, 15, 31}, 3)
		if rapid.Bool().Draw(t, "rejected") {
			p = windy(15)
		}
		peers := rapid.IntRange(2, 4).Draw(t, "peers")
		c := Config{
			Problem: p, Partition: slabsOf(t, p, peers), Tolerance: impossible, Scheme: Synchronous(),
			Method:       MethodConfig{Name: rapid.SampledFrom([]string{SOR, Multigrid}).Draw(t, "method")},
			lookPoints:   1 + rapid.SampledFrom([]int{0, 100, 10000, 1 << 20}).Draw(t, "look"),
			gatherPoints: 1 + rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "gather"),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		n.stopAt, n.stopRank = time.Duration(rapid.IntRange(1, 60).Draw(t, "stop"))*time.Millisecond, Rank(rapid.IntRange(0, peers-1).Draw(t, "rank"))
		require.NoError(t, n.run())
		o := n.peers[0].Outcome()
		require.Contains(t, []Reason{Interrupted, Stagnated}, o.Reason)
		for r, q := range n.peers {
			require.Equal(t, o.Sweeps, q.Outcome().Sweeps, "rank %d", r)
			require.Equal(t, o.Reason, q.Outcome().Reason, "rank %d", r)
		}
		e, err := Evaluate(p, n.assemble(p, c.Partition), nil)
		require.NoError(t, err)
		if c.Method.Name == Multigrid && p.Symmetric() {
			require.LessOrEqual(t, e.RelativeResidual, 1.0)
		}
	})
}

// MaxSweeps bounds the work of multigrid, too: what the safeguard relaxes counts.
func TestMaxSweepsBoundsTheWork(t *testing.T) {
	p := windy(15)
	c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, MaxSweeps: 20, Method: MethodConfig{Name: Multigrid}}
	a := newSingle(t, c)
	for a.step(t) {
	}
	o := a.peer.Outcome()
	require.Equal(t, ReachedSweeps, o.Reason)
	nominal := a.peer.(*Levels).course.method.(*multigrid).nominal
	require.LessOrEqual(t, o.Work, 22*nominal+20)
}
