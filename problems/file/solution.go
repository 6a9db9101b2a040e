package file

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// WriteSolution writes a solution, the values at the interior points, [z][y][x], in the format of the extension of path:
// .vti, .vtu, .vtp, .xdmf, .npy, .csv, .contour.csv or .png (docs/problems.md). .vti, .vtu and .xdmf hold the contact force,
// too. An existing file is replaced when the new one is complete.
func WriteSolution(path string, p *problem.Problem, u []float64) error {
	if len(u) != p.Points() {
		return fmt.Errorf("output %s: %d values for a grid of %d points", path, len(u), p.Points())
	}
	s := output.Solution{Problem: p, U: u}
	if output.HoldsForce(path) {
		f, err := verify.ContactForce(p, nil, 0, u, nil)
		if err != nil {
			return fmt.Errorf("output %s: %w", path, err)
		}
		s.Force = f.Values
	}
	return output.Write(path, s)
}

// ReadSolution reads values for the grid of a problem from an .npy file, with the boundary or without it, and returns those
// at the interior points, [z][y][x]; a solver can start from them.
func ReadSolution(path string, p *problem.Problem) ([]float64, error) {
	return output.ReadInitial(path, p)
}
