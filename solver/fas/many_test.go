package fas

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

var long = flag.Bool("long", false, "solve all random problems")

// drawnRun is a random problem and the run that solves it.
type drawnRun struct {
	name    string
	problem *problem.Problem
	parts   [3]int
	scheme  iterate.Scheme
	latency float64 // in steps
	loss    float64
}

// drawRun draws a problem: a diffusion that jumps by up to 10⁴ on balls, islands or layers, flows, two obstacles, obstacles
// without smoothness, on grids that halve or not.
func drawRun(seed uint64) (d drawnRun) {
	r := rand.New(rand.NewPCG(seed, 85))
	pick := func(all ...int) int { return all[r.IntN(len(all))] }
	dim := pick(2, 2, 3)
	p := &problem.Problem{Name: "random", Dimension: dim, N: [3]int{1, 1, 1}, Diffusion: problem.Coefficient{Value: 1},
		Boundary: func(problem.Point) float64 { return 0 }}
	d.problem, d.parts = p, [3]int{1, 1, 1}
	for a := range dim {
		p.Hi[a] = []float64{1, 1, .5, 2}[r.IntN(4)]
		p.N[a] = []int{pick(31, 47, 63, 40, 64, 50), pick(23, 31, 20, 24)}[dim-2]
		d.parts[a] = pick(1, 2, 2, 3)
	}
	at := problem.Point{.2 + .6*r.Float64(), .2 + .6*r.Float64(), .2 + .6*r.Float64()}
	contrast := math.Pow(10, 8*r.Float64()-4)
	switch k := r.IntN(6); k {
	case 1:
		radius := .1 + .3*r.Float64()
		p.Diffusion.Of = func(q problem.Point) float64 { return solvertest.Where(distance(q, at, dim) < radius, contrast) }
		d.name += fmt.Sprintf("ball %.2g ", contrast)
	case 2:
		p.Diffusion.Of = func(q problem.Point) float64 {
			return solvertest.Where(math.Sin(22*math.Floor(8*q[0])+62*math.Floor(8*q[1])+40*math.Floor(8*q[2])) > .2, contrast)
		}
		d.name += fmt.Sprintf("islands %.2g ", contrast)
	case 3:
		axis, width := r.IntN(dim), .05+.2*r.Float64()
		p.Diffusion.Of = func(q problem.Point) float64 {
			return solvertest.Where(math.Mod(q[axis], 2*width) < width, contrast)
		}
		d.name += fmt.Sprintf("layers %.2g ", contrast)
	}
	strength := math.Pow(10, 3.3*r.Float64()) * []float64{-1, 1}[r.IntN(2)]
	p.Upwind = true
	switch r.IntN(4) {
	case 1:
		p.Velocity[0].Value, p.Velocity[1].Value = strength, -strength*.7
		d.name += fmt.Sprintf("wind %.2g ", strength)
	case 2:
		p.Velocity[0].Of = func(q problem.Point) float64 { return strength * (q[1] - .5) }
		p.Velocity[1].Of = func(q problem.Point) float64 { return -strength * (q[0] - .5) }
		d.name += fmt.Sprintf("swirl %.2g ", strength)
	}
	load := 20 * (r.Float64() - .5)
	p.Source.Of = func(q problem.Point) float64 { return load * math.Sin(9*q[0]+4*q[1]) }
	if r.IntN(4) == 0 {
		p.Reaction.Value = math.Pow(10, 4*r.Float64())
		d.name += fmt.Sprintf("reaction %.2g ", p.Reaction.Value)
	}
	top := .6 * r.Float64()
	switch r.IntN(4) {
	case 0:
		p.Obstacle = func(q problem.Point) float64 {
			s := distance(q, at, dim)
			return top - 4*s*s
		}
	case 1:
		phase := 7 * r.Float64()
		p.Obstacle = func(q problem.Point) float64 {
			s, a := 0.0, .5
			for m := 3.; m < 100; m *= 2 {
				s += a * math.Sin(m*q[0]*5+phase+math.Sin(m*q[1]*7)) * math.Cos(m*q[1]*4+m*q[2]*6)
				a *= .55
			}
			return .3*s - .2
		}
		d.name += "fractal "
	case 2:
		p.Obstacle = func(q problem.Point) float64 { return top - .4 - distance(q, at, dim) }
		d.name += "cone "
	}
	if r.IntN(3) == 0 {
		lower := p.Obstacle
		p.Upper = func(q problem.Point) float64 {
			u := .05 + .1*q[0]
			if lower != nil {
				u = max(u, lower(q)+.02)
			}
			return u
		}
		d.name += "upper "
	}
	d.scheme = iterate.Asynchronous()
	if r.IntN(4) == 0 {
		d.scheme = iterate.Synchronous()
	} else if r.IntN(3) == 0 {
		d.loss = .4 * r.Float64()
	}
	d.latency = math.Pow(10, 1.7*r.Float64()-1)
	d.name += fmt.Sprintf("%v %v %s %.2g", p.N, d.parts, d.scheme.Name(), d.latency)
	return d
}

func distance(q, at problem.Point, dim int) float64 {
	s := 0.0
	for a := range dim {
		s += (q[a] - at[a]) * (q[a] - at[a])
	}
	return math.Sqrt(s)
}

// ended is the end of a drawn run.
type ended struct {
	reason   iterate.Reason
	residual float64 // recomputed
	reported float64
	steps    iterate.Iteration // of the fastest peer
	damped   bool              // some peer has damped its corrections
	trips    int               // suspensions of all peers
}

func (d *drawnRun) run(t *testing.T, seed uint64) (e ended) {
	part, err := problem.GridOf(d.problem.N, d.parts)
	require.NoError(t, err)
	c := problem.Config{Problem: d.problem, Partition: part, Scheme: d.scheme, Tolerance: 1e-6, MaxSweeps: 1000,
		Method: problem.MethodConfig{Name: problem.FAS}, Repeat: time.Duration(20 * d.problem.Points())}
	n, err := solvertest.NewNetwork(seed, Method{}.New, solvertest.ConfigsFor(c))
	require.NoError(t, err, d.name)
	step := 0
	for _, q := range n.Peers {
		w := q.(*peer)
		step = max(step, w.grids.downWork()+w.grids.upWork())
	}
	if d.scheme.Asynchronous() {
		n.Segment, n.Loss = 1<<30, d.loss
	}
	n.Jitter = time.Duration(2*d.latency*float64(step)) + 1
	n.PointTime = func(int, time.Duration) time.Duration { return 1 }
	require.NoError(t, n.Run(), d.name)
	for _, q := range n.Peers {
		o := q.Outcome()
		e.reason, e.reported, e.steps = o.Reason, o.Residual, max(e.steps, o.Iterate)
		g := &q.(*peer).guard
		e.damped = e.damped || g.halvings > 0
		e.trips += g.trips
	}
	v, err := verify.Evaluate(d.problem, n.Assemble(d.problem), nil)
	require.NoError(t, err)
	e.residual = v.RelativeResidual
	return e
}

// TestRandomProblems checks that no random problem diverges, that the residual of every answer is the one that the peers
// report, and that few problems need relaxation without corrections or more than 1000 steps.
func TestRandomProblems(t *testing.T) {
	number := uint64(150)
	switch {
	case *long:
		number = 1000
	case testing.Short():
		number = 60
	}
	damped, fallen, slow := 0, 0, 0
	for seed := range number {
		d := drawRun(seed)
		e := d.run(t, seed)
		require.NotEqual(t, iterate.Diverged, e.reason, "%d, %s", seed, d.name)
		require.Equal(t, e.reason == iterate.Converged, e.residual <= 1e-6, "%d, %s: %+v", seed, d.name, e)
		require.Equal(t, e.reported, e.residual, "%d, %s: the residual that the peers report", seed, d.name)
		if e.damped {
			damped++
		}
		if e.trips > 0 {
			fallen++
		}
		if e.reason != iterate.Converged {
			slow++
		}
		if e.trips > 0 || e.reason != iterate.Converged {
			t.Logf("%d, %s: corrections suspended %d times, %d steps to %.2g", seed, d.name, e.trips, e.steps, e.residual)
		}
	}
	t.Logf("of %d problems, corrections were damped in %d and suspended in %d; %d took more than 1000 steps", number, damped,
		fallen, slow)
	require.LessOrEqual(t, fallen, int(number)/20)
	require.LessOrEqual(t, slow, 1+int(number)/100)
}
