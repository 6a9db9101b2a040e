package multilevel

import (
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// inclusion is a region of another diffusion in the unit square or cube.
type inclusion struct {
	name     string
	dim      int
	contains func(q problem.Point) bool
	most     [2]int // cycles at contrasts of 1e4 and 1e-4: about three times the median over all sizes
}

func inclusions() []inclusion {
	disk := func(name string, x, y, squared float64) inclusion {
		return inclusion{name, 2, func(q problem.Point) bool {
			return (q[0]-x)*(q[0]-x)+(q[1]-y)*(q[1]-y) < squared
		}, [2]int{45, 45}}
	}
	box := func(name string, x, y, half float64) inclusion {
		return inclusion{name, 2, func(q problem.Point) bool {
			return math.Abs(q[0]-x) < half && math.Abs(q[1]-y) < half
		}, [2]int{36, 36}}
	}
	return []inclusion{
		disk("disk in the middle", 0.5, 0.5, 0.05), disk("disk", 0.3, 0.4, 0.04),
		disk("disk near an edge", 0.71, 0.23, 0.02), disk("large disk", 0.45, 0.6, 0.1),
		box("box in the middle", 0.5, 0.5, 0.2), box("box", 0.37, 0.61, 0.15),
		{"fine stripes", 2, func(q problem.Point) bool { return math.Sin(40*q[0]) > 0 }, [2]int{100, 180}},
		{"stripes", 2, func(q problem.Point) bool { return math.Sin(15*q[1]) > 0 }, [2]int{30, 30}},
		{"half", 2, func(q problem.Point) bool { return q[0]+0.3*q[1] > 0.6 }, [2]int{39, 39}},
		{"layer", 2, func(q problem.Point) bool { return q[1] > 0.4 && q[1] < 0.45 }, [2]int{42, 24}},
		{"step", 1, func(q problem.Point) bool { return q[0] > 0.6 }, [2]int{18, 18}},
		{"interval", 1, func(q problem.Point) bool { return math.Abs(q[0]-0.37) < 0.2 }, [2]int{18, 18}},
		{"intervals", 1, func(q problem.Point) bool { return math.Sin(23*q[0]) > 0 }, [2]int{18, 18}},
		{"ball", 3, func(q problem.Point) bool {
			return (q[0]-0.5)*(q[0]-0.5)+(q[1]-0.5)*(q[1]-0.5)+(q[2]-0.5)*(q[2]-0.5) < 0.08
		}, [2]int{45, 36}},
	}
}

// TestMultigridAtEverySize checks that no size of the grid needs many more cycles than others, whatever the coarser
// grids are: some have a coarsest grid of two points per axis, of which a region of high diffusion couples all.
// go test ./solver/multilevel -run AtEverySize -v -args -long prints the cycles at all sizes.
func TestMultigridAtEverySize(t *testing.T) {
	for _, c := range inclusions() {
		sizes := []int{5, 9, 11, 12, 18, 19, 20, 22, 23, 36, 40, 43, 47}
		if c.dim == 3 {
			if sizes = sizes[:5]; testing.Short() {
				continue
			}
		}
		if *long {
			sizes = nil
			for n := 5; n <= 100 && (c.dim < 3 || n <= 24); n++ {
				sizes = append(sizes, n)
			}
		}
		for i, contrast := range []float64{1e4, 1e-4} {
			line := fmt.Sprint(c.name, ", contrast ", contrast, ":")
			for _, n := range sizes {
				s, err := SolveBy(inclusionProblem(c, contrast, n), problem.MethodConfig{Name: problem.Multigrid}, 1e-8, 400, nil)
				require.NoError(t, err)
				line += fmt.Sprint(" ", n, ":", s.Cycles)
				if *long {
					continue
				}
				require.Equal(t, iterate.Converged, s.Reason, line)
				require.LessOrEqual(t, s.Cycles, c.most[i], line)
			}
			t.Log(line)
		}
	}
}

func inclusionProblem(c inclusion, contrast float64, n int) *problem.Problem {
	p := &problem.Problem{
		Name: c.name, Dimension: c.dim, N: [3]int{1, 1, 1}, Source: problem.Coefficient{Value: 100},
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 {
			return solvertest.Where(c.contains(q), contrast)
		}},
		Boundary: func(problem.Point) float64 { return 0 },
		Obstacle: func(q problem.Point) float64 { return 0.05*math.Sin(9*q[0]) - 0.1 },
	}
	for a := range c.dim {
		p.Hi[a], p.N[a] = 1, n
	}
	return p
}

// TestMultigridWithAWeakFlow checks that a flow that is weak beside the diffusion costs no cycles.
func TestMultigridWithAWeakFlow(t *testing.T) {
	for i, c := range inclusions() {
		if c.dim != 2 || testing.Short() && i%3 != 0 {
			continue
		}
		var work [2]float64
		for i, speed := range []float64{0, 0.1} {
			p := inclusionProblem(c, 1e4, 60)
			p.Upwind = true
			if speed > 0 {
				p.Velocity = [3]problem.Coefficient{
					{Of: func(q problem.Point) float64 { return speed * (q[1] - 0.5) }},
					{Of: func(q problem.Point) float64 { return speed * (0.5 - q[0]) }},
				}
			}
			s, err := SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-7, 400, nil)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, s.Reason, c.name)
			work[i] = s.Work
		}
		t.Log(c.name, work)
		require.LessOrEqual(t, work[1], 1.2*work[0]+10, c.name)
	}
}
