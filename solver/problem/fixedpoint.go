package problem

import "github.com/p2pdc/p2pdc/solver/iterate"

// FromFixedPoint returns an iteration as a problem on a line: unknown i is the grid point at coordinate i. So what partitions,
// runs, repairs, stores and shows the values of an obstacle problem does so with those of an iteration. Its method is FixedPoint.
func FromFixedPoint(name string, f iterate.FixedPoint) *Problem {
	return &Problem{
		Name: name, Dimension: 1, N: [3]int{f.Unknowns, 1, 1}, Lo: Point{-1}, Hi: Point{float64(f.Unknowns)},
		Diffusion: Coefficient{Value: 1}, Boundary: func(Point) float64 { return 0 }, FixedPoint: &f,
	}
}

// checkFixedPoint returns an error unless FromFixedPoint has made the grid.
func (p *Problem) checkFixedPoint() error {
	if err := p.FixedPoint.Check(); err != nil {
		return p.Errorf("%v", err)
	}
	if p.Evolution != nil || p.N != [3]int{p.FixedPoint.Unknowns, 1, 1} {
		return p.Errorf("a grid of %v points for an iteration of %d unknowns; see FromFixedPoint", p.N, p.FixedPoint.Unknowns)
	}
	return nil
}
