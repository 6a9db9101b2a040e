package solver

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A tolerance below rounding ends a run of any method on any partition, in 1 to 3 dimensions and in time steps, at
// the same iterate as with one peer.
func TestRunsStagnate(t *testing.T) {
	stagnated := 0
	solvertest.CheckUntil(t, func() bool { return stagnated > 0 }, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		if rapid.IntRange(0, 3).Draw(t, "steps") == 0 {
			p = solvertest.Evolve(t, p)
		}
		c := problem.Config{
			Problem:   p,
			Partition: solvertest.AnyPartition(t, p),
			Scheme:    iterate.Synchronous(),
			Method:    anyMethod(t),
			Tolerance: solvertest.Impossible,
		}
		if c.Partition.Peers() > solvertest.MostPeers {
			c.Partition, _ = problem.Slabs(p.N, 1, nil)
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Contains(t, []iterate.Reason{iterate.Converged, iterate.Stagnated}, o.Reason)
		for _, q := range n.Peers {
			require.Equal(t, o.Reason, q.Outcome().Reason, "one verdict")
			require.Equal(t, o.Iterate, q.Outcome().Iterate)
		}
		if o.Reason == iterate.Converged {
			require.LessOrEqual(t, o.Residual, solvertest.Impossible)
			return
		}
		stagnated++
		require.Less(t, o.Residual, 1e-11, "it ends where rounding does")
		if c.Method.Name == "" {
			want, err := richardson.SolveSequential(p, problem.Jacobi, solvertest.Impossible, 0, 0, 0)
			require.NoError(t, err)
			require.Equal(t, want.Reason, o.Reason)
			require.Equal(t, want.Sweeps, o.Sweeps)
			solvertest.RequireSameBits(t, want.U, n.Assemble(p))
		}
	})
}

// A start that solves the problem but for rounding, with every point in contact, ends a run: its residual does not fall.
// Rounding moves the points of some problems off contact.
func TestStartThatIsTheSolution(t *testing.T) {
	methods := []problem.MethodConfig{{}, {Name: problem.SOR}, {Name: problem.Multigrid},
		{Name: problem.Schwarz, Local: problem.SOR, Omega: 1.1, Coarse: -1}}
	stagnated := 0
	for i := range 200 {
		p := solvertest.String1D(3)
		p.Source = problem.Coefficient{}
		p.Boundary = func(q problem.Point) float64 { return 2 + 0.01*float64(i) + (0.3+0.007*float64(i))*q[0] }
		p.Obstacle, p.Initial = p.Boundary, nil
		frozen := *p // its step begins with the residual of rounding, to which the tolerance refers
		p.Evolution = &problem.Evolution{End: 1 + float64(i%7), Steps: 1, At: func(float64) *problem.Problem {
			q := frozen
			return &q
		}}
		one, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 1000)
		require.NoError(t, err)
		require.NotEqual(t, iterate.ReachedSweeps, one.Reason, i)
		if one.Reason == iterate.Stagnated {
			stagnated++
		}
		c := problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Scheme: iterate.Synchronous(), Method: methods[i%4],
			Tolerance: 1e-6, MaxSweeps: 1000,
		}
		if i%8 >= 4 && c.Method.Name != problem.SOR && c.Method.Name != problem.Multigrid {
			c.Scheme = iterate.Asynchronous()
		}
		n := runOf(t, 1, c)
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.NotEqual(t, iterate.ReachedSweeps, o.Reason, "%d: %s %s", i, c.Method.Name, c.Scheme.Name())
		if c.Method.Name == "" && !c.Scheme.Asynchronous() {
			require.Equal(t, one.Reason, o.Reason)
			require.Equal(t, one.Sweeps, o.Sweeps)
		}
	}
	require.Greater(t, stagnated, 10)
}

// Snapshots also detect stagnation in asynchronous runs.
func TestAsynchronousRunsStagnate(t *testing.T) {
	stagnated := 0
	solvertest.CheckUntil(t, func() bool { return stagnated > 0 }, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		p.Reaction.Value += 20 // few sweeps
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Tolerance: solvertest.Impossible,
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(2)}).
				Draw(t, "scheme"),
		}
		if rapid.Bool().Draw(t, "schwarz") {
			c.Method = solvertest.AnySchwarz(t)
		}
		if c.Partition.Peers() > solvertest.MostPeers {
			c.Partition, _ = problem.Slabs(p.N, 1, nil)
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Contains(t, []iterate.Reason{iterate.Converged, iterate.Stagnated}, o.Reason)
		for _, q := range n.Peers {
			require.Equal(t, o.Reason, q.Outcome().Reason, "one verdict")
		}
		if o.Reason == iterate.Converged {
			return
		}
		stagnated++
		require.Less(t, o.Residual, 1e-11, "it ends where rounding does")
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		require.Equal(t, o.Residual, e.RelativeResidual)
	})
}

// Residuals and estimates of an asynchronous run that stagnates fluctuate by rounding. Their chance minima delay the
// verdict by few snapshots.
func TestChanceMinimaDelayNoVerdict(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 7, 8}, 3)
	p.Reaction.Value = 20
	part, err := problem.Boxes(p.N, 8)
	require.NoError(t, err)
	seeds := uint64(16)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		n := runOf(t, seed, problem.Config{
			Problem: p, Partition: part, Tolerance: solvertest.Impossible, Scheme: iterate.Asynchronous(),
		})
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Equal(t, iterate.Stagnated, o.Reason)
		require.LessOrEqual(t, o.Snapshots, 10, seed)
		require.Less(t, n.Now, 1500*time.Millisecond, seed)
	}
}

// The residual that rounding leaves grows with the grid, so large grids stagnate far above ε.
func TestLargeGridsStagnateEarly(t *testing.T) {
	p := solvertest.String1D(1<<14 - 1)
	c := problem.Config{
		Problem:   p,
		Partition: solvertest.SlabsOf(t, p, 1),
		Scheme:    iterate.Synchronous(),
		Tolerance: 1e-12,
		Method:    problem.MethodConfig{Name: problem.Multigrid},
	}
	n := runOf(t, 1, c)
	require.NoError(t, n.Run())
	o := n.Peers[0].Outcome()
	require.Equal(t, iterate.Stagnated, o.Reason)
	require.Less(t, o.Residual, 1e-8)
	require.Less(t, o.Sweeps, iterate.Iteration(40))
}

// A run that converges, however slowly, does not stagnate and meets its tolerance.
func TestSlowRunsAreNotStopped(t *testing.T) {
	slow := solvertest.String1D(255)
	for name, c := range map[string]struct {
		p   *problem.Problem
		m   problem.MethodConfig
		tol float64
	}{
		"richardson":        {solvertest.String1D(63), problem.MethodConfig{}, 1e-12},
		"short steps":       {solvertest.String1D(31), problem.MethodConfig{Step: 0.05}, 1e-12},
		"slow sor":          {slow, problem.MethodConfig{Name: problem.SOR, Omega: 1}, 1e-10},
		"over-relaxed":      {slow, problem.MethodConfig{Name: problem.SOR, Omega: 1.999}, 1e-9},
		"stiff coefficient": {stiff(31), problem.MethodConfig{}, 1e-11},
	} {
		run := problem.Config{
			Problem:   c.p,
			Partition: solvertest.SlabsOf(t, c.p, 1),
			Scheme:    iterate.Synchronous(),
			Tolerance: c.tol,
			Method:    c.m,
		}
		n := runOf(t, 1, run)
		require.NoError(t, n.Run(), name)
		require.Equal(t, iterate.Converged, n.Peers[0].Outcome().Reason, name)
	}
}

// stiff has a diffusion that jumps by a factor of 100.
func stiff(n int) *problem.Problem {
	p := solvertest.String1D(n)
	p.Diffusion.Of = func(q problem.Point) float64 {
		if q[0] < 0.4 {
			return 0.01
		}
		return 1
	}
	return p
}

// Richardson on 1023 points takes millions of sweeps. None of its first checks counts as stagnation, although the
// residual falls by a millionth per sweep.
func TestVerySlowRunsAreNotStopped(t *testing.T) {
	one, err := richardson.SolveSequential(solvertest.String1D(1023), problem.Jacobi, 1e-9, 0, 0, 20000)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedSweeps, one.Reason)
}

// A run whose residual does not fall for other reasons than rounding continues.
func TestStandstillAboveRoundingIsNotStagnation(t *testing.T) {
	var s iterate.Stagnation
	asked := false
	for k := iterate.Iteration(0); k < 10000; k++ {
		why, ask := s.Evaluate(k, float64(k), 0.5, solvertest.Impossible, iterate.StagnantChecks, asked, 1e14)
		require.Equal(t, iterate.Running, why)
		asked = ask
	}
	require.Equal(t, iterate.Running, func() iterate.Reason {
		s = iterate.Stagnation{}
		why := iterate.Running
		for k := iterate.Iteration(0); k < 10000 && why == iterate.Running; k++ {
			why, asked = s.Evaluate(
				k, float64(k),
				math.Pow(1-1e-7, float64(k)),
				solvertest.Impossible,
				iterate.StagnantChecks,
				asked,
				1e20,
			)
		}
		return why
	}(), "a residual that falls, by ever so little, is no stagnation")
}

// Without a tolerance a run continues until it is stopped, also at the level of rounding.
func TestRunsWithoutAToleranceDoNotStagnate(t *testing.T) {
	for _, m := range []problem.MethodConfig{{}, {Name: problem.SOR}, {Name: problem.Schwarz, Local: problem.SOR,
		Omega: 1.1, Coarse: -1}} {
		p := solvertest.Membrane([3]int{7, 6, 1}, 2)
		p.Source.Of = func(q problem.Point) float64 { return 1 + math.Sin(7*q[0]+5*q[1]) }
		c := problem.Config{
			Problem:   p,
			Partition: solvertest.SlabsOf(t, p, 2),
			Scheme:    iterate.Synchronous(),
			Method:    m,
			MaxSweeps: 6000,
		}
		n, err := newNetwork(1, solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		require.Equal(t, iterate.ReachedSweeps, n.Peers[0].Outcome().Reason, m.Name)
	}
}

// A residual that oscillates while it falls does not count as stagnation, although a new minimum takes many checks.
func TestOscillatingResidualsAreNotStagnation(t *testing.T) {
	var s iterate.Stagnation
	asked := false
	for k := iterate.Iteration(0); k < 20000; k++ {
		r := math.Exp(-1e-4 * float64(k))
		if k > 200 && k%20 != 0 {
			r *= 1.5
		}
		why, ask := s.Evaluate(k, float64(k), r, solvertest.Impossible, iterate.StagnantChecks, asked, 1e20)
		require.Equal(t, iterate.Running, why, "check %d", k)
		asked = ask
	}
}

// A run whose solution is out of reach, since a strong flow leaves the domain on all sides, ends: its residual stands
// still far above rounding.
func TestUnreachableSolutionStagnates(t *testing.T) {
	for _, c := range []choiceCase{
		{text: strings.Replace(square("velocity: [\"2000*(x-0.5)\", \"2000*(y-0.5)\"]\n"), "0.2 - 2*", "0.2 - ", 1), n: []int{15}},
		{text: "dimension: 1\ndomain: [[0, 1]]\nboundary: \"0.2\"\nf: \"1\"\nobstacle: \"0.1 - x\"\ndiffusion: \"1e-4\"\n" +
			"velocity: [\"sin(10*x)\"]\n", n: []int{63}},
	} {
		p := c.problem(t)
		for _, name := range []string{problem.Richardson, problem.SOR, problem.Multigrid, Auto} {
			s, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: name}, MaxSweeps: 1 << 22, Threads: 1})
			require.ErrorIs(t, err, ErrNotConverged, name)
			require.Equal(t, iterate.Stagnated, s.Reason, name)
		}
		for _, m := range []problem.MethodConfig{
			{Name: problem.Richardson}, {Name: problem.Schwarz, Local: problem.SOR, InnerCycles: 1},
		} {
			for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(2), iterate.Asynchronous()} {
				n := runOf(t, 1, problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Scheme: scheme, Method: m,
					Tolerance: 1e-6, MaxSweeps: 1 << 18})
				require.NoError(t, n.Run())
				o := n.Peers[0].Outcome()
				require.Equal(t, iterate.Stagnated, o.Reason, "%s %s", m.Name, scheme.Name())
				bounded := max(o.Work, float64(o.Sweeps))
				if scheme.Asynchronous() { // relaxations of Schwarz, between two halos, count as one sweep each
					bounded = float64(o.Sweeps)
				}
				require.Less(t, bounded, float64(1<<17), "%s %s: the work is bounded", m.Name, scheme.Name())
			}
		}
	}
}

// SOR on rings of a diffusion that varies by ten million first increases the residual by a factor of thousands, and reaches
// its first value again after 110,000 sweeps. It is not stopped, also where it alternates with multigrid, which needs far more.
func TestRisingResidualsAreNotStopped(t *testing.T) {
	c := pattern("rings", []int{31, 31}, "f: \"100\"", "diffusion: \"sin(30*sqrt((x-0.5)^2 + (y-0.5)^2)) > 0 ? 1e7 : 1\"")
	p := c.problem(t)
	for _, name := range []string{problem.SOR, Auto} {
		s, err := Solve(t.Context(), p, Options{
			Method: problem.MethodConfig{Name: name}, Tolerance: 1e-4, MaxSweeps: 1 << 20, Threads: 1,
		})
		require.NoError(t, err, name)
		require.Greater(t, s.Peers[0].Sweeps, iterate.Iteration(1<<16), "this problem shows nothing")
	}
}

// Multigrid goes on from the iterate of SOR, also where that has a large residual, rather than begin again.
func TestAlternationKeepsTheIterate(t *testing.T) {
	c := pattern("cells", []int{63, 63}, "f: \"100\"", "diffusion: \"sin(60*x)*sin(60*y) > 0 ? 1e6 : 1\"")
	p := c.problem(t)
	s, err := Solve(t.Context(), p, Options{Tolerance: 1e-4, MaxSweeps: 1 << 20, Threads: 1})
	require.NoError(t, err)
	require.Less(t, s.Peers[0].Work, 1200., s.Method)
}

// A residual that falls steeply at first, rises, and falls slowly from there does not stand still, though it is above its
// smallest value for long. One that keeps the height does.
func TestSlowFallAfterARiseIsNoStandstill(t *testing.T) {
	for _, rate := range []float64{1e-6, 0} {
		var s iterate.Stagnation
		s.Evaluate(0, 0, 1, 1e-6, iterate.StagnantChecks, false, 0)
		s.Evaluate(1, 10, 200, 1e-6, iterate.StagnantChecks, false, 0)
		s.Evaluate(2, 30, 7, 1e-6, iterate.StagnantChecks, false, 0)
		why := iterate.Running
		work := 0.
		for k := iterate.Iteration(3); why == iterate.Running && work < 4e5; k++ {
			work = float64(100 * k)
			why, _ = s.Evaluate(k, work, 40*math.Exp(-rate*work), 1e-6, iterate.StagnantChecks, true, 0)
		}
		if rate > 0 {
			require.Equal(t, iterate.Running, why)
		} else {
			require.Equal(t, iterate.Stagnated, why)
			require.Less(t, work, 1.4e5)
		}
	}
}

// SOR amplifies rounding errors where the diffusion varies by a million, since its factor is near 2: the residual then stays
// above tolerances that some Gauss–Seidel sweeps meet. The run meets them, or ends where those stagnate, on any partition.
// With a factor of the user it ends.
func TestAmplifiedRoundingErrors(t *testing.T) {
	for _, c := range []struct {
		inside string
		n      int
		peers  int
		omega  float64
		tol    float64
		reason iterate.Reason
		most   iterate.Iteration
	}{
		{"sin(90*x)*sin(90*y) > 0", 63, 1, 0, 1e-6, iterate.Converged, 250000},
		{"sin(37*x)*sin(37*y) > 0", 23, 2, 0, 1e-9, iterate.Converged, 60000},
		{"(x-0.5)^2 + (y-0.5)^2 < 0.09", 23, 1, 0, 1e-9, iterate.Stagnated, 120000},
		{"sin(37*x)*sin(37*y) > 0", 23, 1, 1.9999, 1e-9, iterate.Stagnated, 500000},
	} {
		if testing.Short() && c.n > 23 {
			continue
		}
		made := pattern("", []int{c.n, c.n}, "f: \"100\"", "diffusion: \""+c.inside+" ? 1e6 : 1\"")
		p := made.problem(t)
		var sweeps iterate.Iteration
		for peers := 1; peers <= c.peers; peers++ {
			n := runOf(t, 1, problem.Config{
				Problem: p, Partition: solvertest.SlabsOf(t, p, peers), Scheme: iterate.Synchronous(), Tolerance: c.tol,
				MaxSweeps: c.most, Method: problem.MethodConfig{Name: problem.SOR, Omega: c.omega},
			})
			require.NoError(t, n.Run())
			o := n.Peers[0].Outcome()
			require.Equal(t, c.reason, o.Reason, "%s: %v after %d", c.inside, o.Residual, o.Sweeps)
			if c.omega == 0 {
				require.Less(t, o.Residual, 1e-8)
			}
			if peers == 1 {
				sweeps = o.Sweeps
			}
			require.Equal(t, sweeps, o.Sweeps)
		}
	}
}

// Schwarz on boxes that share a disc of high diffusion converges slowly from a height, also out of lockstep, where the residuals
// of snapshots fluctuate. It is not stopped.
func TestSlowSchwarzIsNotStopped(t *testing.T) {
	made := pattern("disc", []int{11, 11}, "f: \"100\"", "diffusion: \"(x-0.5)^2 + (y-0.5)^2 < 0.09 ? 1000 : 1\"")
	p := made.problem(t)
	for _, scheme := range []iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(2)} {
		n := runOf(t, 1, problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Scheme: scheme, Tolerance: 0.5, MaxSweeps: 1 << 15,
			Method: problem.MethodConfig{Name: problem.Schwarz, Local: problem.SOR, InnerCycles: 40, Coarse: -1},
		})
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Equal(t, iterate.Converged, o.Reason, "%s: %v after %v", scheme.Name(), o.Residual, o.Work)
		require.Greater(t, o.Work, float64(3<<15), "this problem shows nothing")
	}
}

// boxes is a membrane under a load over boxes in which the diffusion varies by that factor.
func boxes(n int, contrast float64) *problem.Problem {
	p := solvertest.Membrane([3]int{n, n, 1}, 2)
	p.Source.Value = 100
	p.Obstacle = func(q problem.Point) float64 { return 0.05*math.Sin(9*q[0]) - 0.1 }
	p.Diffusion.Of = func(q problem.Point) float64 {
		if math.Sin(37*q[0])*math.Sin(37*q[1]) > 0 {
			return contrast
		}
		return 1
	}
	return p
}

// Sweeps with a factor that is too small by far end in bounded work.
func TestAFactorThatIsTooSlowEnds(t *testing.T) {
	s, err := Solve(t.Context(), boxes(15, 1e6), Options{
		Method: problem.MethodConfig{Name: problem.SOR, Omega: 1.5}, MaxSweeps: 1 << 20,
	})
	require.ErrorIs(t, err, ErrNotConverged)
	require.Equal(t, iterate.Stagnated, s.Reason)
	require.Less(t, s.Peers[0].Sweeps, iterate.Iteration(1<<19))
	require.LessOrEqual(t, s.Evaluation.RelativeResidual, 1.0, "the starting iterate is better than the last one")
}

// The level of rounding errors is the same for all methods, and each falls below it.
func TestRoundingLevelOfMethods(t *testing.T) {
	for _, contrast := range []float64{1e3, 1e6} {
		if testing.Short() && contrast > 1e3 {
			break
		}
		p, first := boxes(31, contrast), 0.0
		for _, name := range []string{problem.SOR, problem.Multigrid, Auto} {
			s, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: name}, Tolerance: 1e-15})
			require.ErrorIs(t, err, ErrNotConverged)
			require.Equal(t, iterate.Stagnated, s.Reason)
			level, err := verify.RoundingLevel(p, s.U, nil)
			require.NoError(t, err)
			first = cmp.Or(first, level)
			require.InEpsilon(t, first, level, 1e-3)
			require.Less(t, s.Evaluation.RelativeResidual, level*12/32, name)
			require.Greater(t, s.Evaluation.RelativeResidual, level/1e3, name)
		}
	}
	_, err := verify.RoundingLevel(boxes(3, 1), nil, nil)
	require.ErrorContains(t, err, "a vector of 0 values")
}
