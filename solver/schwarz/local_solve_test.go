package schwarz

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// flowAndJump returns a flow that diverged and an inclusion that stalled before the residual of a local solve was
// compared with its initial one.
var long = flag.Bool("long", false, "solve more combinations")

func flowAndJump(n int) map[string]*problem.Problem {
	flow, jump := solvertest.Membrane([3]int{n, n, 1}, 2), solvertest.Membrane([3]int{n, n, 1}, 2)
	for _, p := range []*problem.Problem{flow, jump} {
		p.Upwind, p.Source.Value = true, 1
	}
	flow.Diffusion.Value = 0.001
	flow.Velocity[0].Of = func(q problem.Point) float64 { return 20 * (q[1] - 0.5) }
	flow.Velocity[1].Of = func(q problem.Point) float64 { return -20 * (q[0] - 0.5) }
	flow.Obstacle = func(q problem.Point) float64 {
		return 0.2 - (q[0]-0.5)*(q[0]-0.5) - (q[1]-0.5)*(q[1]-0.5)
	}
	jump.Diffusion.Of = func(q problem.Point) float64 {
		if math.Hypot(q[0]-0.3, q[1]-0.4) < 0.2 {
			return 100
		}
		return 1
	}
	jump.Obstacle = func(q problem.Point) float64 {
		return 0.2 - 2*((q[0]-0.5)*(q[0]-0.5)+(q[1]-0.5)*(q[1]-0.5))
	}
	return map[string]*problem.Problem{"flow": flow, "jump": jump}
}

// solved runs a configuration over a network in virtual time with peers of different speeds. It returns the exchanges
// of peer 0 and the residual of the answer.
func solved(
	t require.TestingT, c problem.Config, seed uint64, observe func(*solvertest.Network),
) (iterate.Iteration, float64) {
	n, err := newNetwork(seed, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	n.Segment, n.Jitter = 1<<20, 50*time.Microsecond
	if observe != nil {
		n.Observe = func() { observe(n) }
	}
	n.PointTime = func(r int, _ time.Duration) time.Duration { return time.Duration(20 + 5*(r%3)) }
	require.NoError(t, n.Run())
	e, err := verify.Evaluate(c.Problem, n.Assemble(c.Problem), nil)
	require.NoError(t, err)
	return n.Peers[0].Outcome().Sweeps, e.RelativeResidual
}

func TestSchwarzConvergesWhereLocalMultigridDiverges(t *testing.T) {
	for name, p := range flowAndJump(31) {
		for _, peers := range []int{2, 4} {
			part, err := problem.Boxes(p.N, peers)
			require.NoError(t, err)
			schemes := []iterate.Scheme{
				iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2),
				iterate.Hybrid(problem.Clusters(part, 2)),
			}
			for i, s := range schemes {
				if testing.Short() && i%2 != peers/4 {
					continue
				}
				for work := range 3 {
					for k, coarse := range []int{-1, 0} {
						if !*long && (work+k)%2 != peers/2%2 || testing.Short() && work != i%3 {
							continue // the other half of the combinations
						}
						c := problem.Config{
							Problem:   p,
							Partition: part,
							Scheme:    s,
							Tolerance: 1e-6,
							MaxSweeps: 1000, // of the fastest peer
							Method:    problem.MethodConfig{Name: problem.Schwarz, Overlap: 2, InnerCycles: work, Coarse: coarse},
						}
						about := fmt.Sprintf("%s, %d peers, %s, work %d, coarse %d", name, peers, s.Name(), work, coarse)
						exchanges, residual := solved(t, c, 1, nil)
						require.LessOrEqual(t, residual, c.Tolerance, "%s: after %d exchanges", about, exchanges)
					}
				}
			}
		}
	}
}

// divergingSolver is a local method whose values are far too large: each of its solves must be rejected. They
// stay above the obstacle, as method.Solver requires; below it every residual would be 0.
type divergingSolver struct {
	method.Solver
	rng *rand.Rand
}

func (w divergingSolver) Cycle(u []float64) float64 {
	shift := []float64{1e3, 1e6, 1e200, math.NaN()}[w.rng.IntN(4)]
	for i := range u {
		u[i] += shift * w.rng.Float64()
	}
	return 1
}

// TestRejectedLocalSolvesNeverIncreaseTheError checks that, with local solves that are always rejected, the
// largest error never grows, for values of any age, and that the run converges.
func TestRejectedLocalSolvesNeverIncreaseTheError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		p := hardProblem(seed, 7)
		part, err := problem.Boxes(p.N, rapid.IntRange(2, 5).Draw(t, "peers"))
		require.NoError(t, err)
		best, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.SOR, Omega: 1}, 1e-13, 1<<20, nil)
		require.NoError(t, err)
		if best.Residual > 1e-11 {
			t.Skip("the solution is not known")
		}
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2)}).
			Draw(t, "scheme")
		c := problem.Config{
			Problem:   p,
			Partition: part,
			Scheme:    s,
			Tolerance: 1e-3,
			MaxSweeps: 30000,
			Method: problem.MethodConfig{
				Name: problem.Schwarz, Overlap: rapid.IntRange(0, 3).Draw(t, "overlap"), InnerCycles: 1, Coarse: -1},
		}
		largest := 0.0
		_, residual := solved(t, c, seed, func(n *solvertest.Network) {
			for _, q := range n.Peers {
				w := q.(*peer)
				if w.Iterate == 0 && w.local != nil {
					if _, is := w.local.solver.(divergingSolver); !is {
						w.local.solver = divergingSolver{w.local.solver, rand.New(rand.NewPCG(seed, uint64(w.config.Rank)))}
					}
				}
			}
			e := 0.0
			for i, v := range n.Assemble(p) {
				e = max(e, math.Abs(v-best.U[i]))
			}
			if largest == 0 {
				largest = e
			}
			require.LessOrEqual(t, e, largest*(1+1e-9)+1e-9)
		})
		require.LessOrEqual(t, residual, c.Tolerance)
	})
}

// hardProblem returns a random problem with a jump of the diffusion, a strong flow or both, with about n points per
// axis.
func hardProblem(seed uint64, n int) *problem.Problem {
	r := rand.New(rand.NewPCG(seed, 15))
	pick := func(v ...float64) float64 { return v[r.IntN(len(v))] }
	dim := 2 + r.IntN(3)/2
	size := [3]int{1, 1, 1}
	for a := range dim {
		size[a] = n + r.IntN(n)/(dim-1)
	}
	p := solvertest.Membrane(size, dim)
	p.Upwind, p.Source.Value = true, pick(1, -1, 0)
	p.Obstacle = func(q problem.Point) float64 { return 0.2 - math.Hypot(q[0]-0.5, q[1]-0.5) }
	at := problem.Point{0.3 + 0.4*r.Float64(), 0.3 + 0.4*r.Float64()}
	kind, contrast, layer := r.IntN(3), pick(1e2, 1e3, 1e-2, 1e-3), r.IntN(2) == 0
	if kind != 1 {
		p.Diffusion.Of = func(q problem.Point) float64 {
			if layer && q[1] > 0.4 && q[1] < 0.5 || !layer && math.Hypot(q[0]-at[0], q[1]-at[1]) < 0.2 {
				return contrast
			}
			return 1
		}
	}
	if s := pick(50, 300, 2000, 20000); kind != 0 {
		turn, cells := r.IntN(2) == 0, 2*math.Pi
		p.Velocity[0].Of = func(q problem.Point) float64 {
			if turn {
				return s * (q[1] - at[1])
			}
			return s * math.Sin(cells*q[0]) * math.Cos(cells*q[1])
		}
		p.Velocity[1].Of = func(q problem.Point) float64 {
			if turn {
				return -s * (q[0] - at[0])
			}
			return -s * math.Cos(cells*q[0]) * math.Sin(cells*q[1])
		}
	}
	return p
}

// TestSchwarzConvergesOnJumpsAndFlows runs drawn configurations, many of which diverged without the guard.
func TestSchwarzConvergesOnJumpsAndFlows(t *testing.T) {
	runs := 20
	switch {
	case *long:
		runs = 200
	case testing.Short():
		runs = 10
	}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 16))
		p := hardProblem(seed, 15)
		part, err := problem.Boxes(p.N, []int{2, 3, 4, 8}[r.IntN(4)])
		require.NoError(t, err)
		schemes := []iterate.Scheme{
			iterate.Synchronous(),
			iterate.Asynchronous(),
			iterate.Asynchronous(),
			iterate.BoundedDelay(2),
			iterate.Hybrid(problem.Clusters(part, 2)),
		}
		c := problem.Config{
			Problem:   p,
			Partition: part,
			Scheme:    schemes[r.IntN(5)],
			Tolerance: 1e-6,
			MaxSweeps: 3000,
			Method: problem.MethodConfig{
				Name: problem.Schwarz, Overlap: []int{1, 2, 4}[r.IntN(3)], InnerCycles: r.IntN(3),
				Coarse: []int{0, 0, -1}[r.IntN(3)],
			},
		}
		exchanges, residual := solved(t, c, seed, nil)
		require.LessOrEqual(t, residual, c.Tolerance, "seed %d: %v points, %d peers, %s, %+v: after %d exchanges",
			seed, p.N, part.Peers(), c.Scheme.Name(), c.Method, exchanges)
	}
}
