package problems

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// The contact radius a and the coefficients of the 2-D solution −A ln r + B are those of PETSc's
// snes/tutorials/ex9: a² (ln 2 − ln a) = 1 − a², and u = 0 at r = 2.
const (
	ball2DContact = 0.697965148223374
	ball2DA       = 0.680259411891719
	ball2DB       = 0.471519893402112
)

// ball3D is a membrane over the unit ball in (−2,2)³.
func ball3D() Builtin {
	exact := func(q problem.Point) float64 {
		r2 := squares(q)
		if r2 <= 0.5 {
			return math.Sqrt(1 - r2)
		}
		return 0.5 / math.Sqrt(r2)
	}
	return ball(exact, Builtin{
		Name: "ball3d",
		Summary: "membrane over the unit ball in (−2,2)³, " +
			"boundary data from the exact solution u = 1/(2r) beyond r = 1/√2",
		Reference: "radial solution by C¹ matching with the fundamental solution 1/r",
		Dimension: 3,
	})
}

// ball2D is the 2-D version, PETSc's example of a variational inequality.
func ball2D() Builtin {
	exact := func(q problem.Point) float64 {
		r := math.Sqrt(squares(q))
		if r <= ball2DContact {
			return ballObstacle(q)
		}
		return float64(-ball2DA*math.Log(r)) + ball2DB
	}
	return ball(exact, Builtin{
		Name: "ball2d",
		Summary: "membrane over the unit ball in (−2,2)², " +
			"boundary data from the exact solution u = −A ln r + B beyond r = 0.698",
		Reference: "PETSc, src/snes/tutorials/ex9.c (Bueler)",
		Dimension: 2,
	})
}

// ball completes a membrane over the unit ball.
func ball(exact problem.Function, b Builtin) Builtin {
	b.Exact = true
	b.build = func(p *problem.Problem, _ []float64) error {
		box(p, -2, 2)
		p.Obstacle, p.Rows.Obstacle = ballObstacle, ballRow
		setExact(p, exact)
		return nil
	}
	return b
}

// ballObstacle is the upper half of the unit sphere up to r = 0.9. Its tangent continues it, so that it is
// defined and C¹ everywhere.
func ballObstacle(q problem.Point) float64 {
	r2 := squares(q)
	if r2 <= 0.9*0.9 {
		return math.Sqrt(1 - r2)
	}
	edge := math.Sqrt(1 - 0.9*0.9)
	return edge - float64(0.9/edge*(math.Sqrt(r2)-0.9))
}

// ballRow evaluates ballObstacle along x.
func ballRow(dst, x []float64, y, z float64) {
	q := problem.Point{0, y, z}
	for i := range dst {
		q[0] = x[i]
		dst[i] = ballObstacle(q)
	}
}

func squares(q problem.Point) float64 {
	return float64(q[0]*q[0]) + float64(q[1]*q[1]) + float64(q[2]*q[2])
}
