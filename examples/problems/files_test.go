// Package problems checks that what a reader would copy from here works.
package problems

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
)

func load(t *testing.T, ref string, n ...int) *solver.Problem {
	p, _, err := file.Load(ref, n)
	require.NoError(t, err)
	return p
}

func solve(t *testing.T, p *solver.Problem) (solver.Sequence, solver.Evaluation) {
	s, err := solver.SolveSequential(p, solver.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, solver.Converged, s.Reason)
	e, err := solver.Evaluate(p, s.U, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, e.RelativeResidual, 1e-6)
	return s, e
}

func TestEveryProblemFileIsValid(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		d, err := file.Check(f)
		require.NoError(t, err)
		require.NotEmpty(t, d.String())
	}
}

// The bar is plastic where u touches the distance to its surface, elastic along
// the diagonals.
func TestTorsion(t *testing.T) {
	p := load(t, "torsion.yaml", 31)
	s, _ := solve(t, p)
	at := func(i, j int) (u, limit float64) { return s.U[(j-1)*31+i-1], p.Upper(p.At(i, j, 1)) }
	u, limit := at(16, 1)
	require.Equal(t, limit, u, "plastic in the middle of a side")
	u, limit = at(16, 16)
	require.Less(t, u, limit, "elastic in the centre")
}

func TestHills(t *testing.T) {
	_, e := solve(t, load(t, "hills.yaml", 15))
	require.Positive(t, e.ContactPoints)
}

// The file and the built-in are one problem.
func TestTerrainIsTheBuiltin(t *testing.T) {
	fromFile, builtin := load(t, "terrain.yaml", 40, 34), load(t, "jacksboro", 40, 34)
	for j := 0; j <= 35; j++ {
		for i := 0; i <= 41; i++ {
			q := builtin.At(i, j, 1)
			require.InDelta(t, builtin.Obstacle(q), fromFile.Obstacle(q), 1e-15)
			require.InDelta(t, builtin.Boundary(q), fromFile.Boundary(q), 1e-15)
		}
	}
	_, e := solve(t, fromFile)
	require.Positive(t, e.ContactPoints)
}
