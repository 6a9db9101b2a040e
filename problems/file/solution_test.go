package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

func TestSolutionsAreWrittenAndRead(t *testing.T) {
	p := &problem.Problem{
		Dimension: 2, N: [3]int{4, 3, 1}, Hi: problem.Point{1, 1}, Diffusion: problem.Coefficient{Value: 1},
		Boundary: func(problem.Point) float64 { return 7 }, Obstacle: func(problem.Point) float64 { return 0 },
	}
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = float64(i) / 3
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "u.npy")
	require.NoError(t, file.WriteSolution(path, p, u))
	again, err := file.ReadSolution(path, p)
	require.NoError(t, err)
	require.Equal(t, u, again)

	vti := filepath.Join(dir, "u.vti")
	require.NoError(t, file.WriteSolution(vti, p, u))
	text, err := os.ReadFile(vti)
	require.NoError(t, err)
	require.Contains(t, string(text), `Name="force"`)

	require.ErrorContains(t, file.WriteSolution(path, p, u[1:]), "11 values for a grid of 12 points")
	require.ErrorContains(t, file.WriteSolution(filepath.Join(dir, "u.txt"), p, u), "no format")
	p.N = [3]int{3, 3, 1}
	_, err = file.ReadSolution(path, p)
	require.ErrorContains(t, err, "the grid is")
}
