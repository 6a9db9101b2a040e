package output

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

func TestWriteExercise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "put.Exercise.csv")
	require.True(t, IsExercise(path))
	require.NoError(t, CheckPath(path))
	require.NoError(t, WriteExercise(path, []float64{100, 50}, []Exercise{{0.5, 0.75}, {1, math.NaN()}}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "time,factor,S1,S2\n0.5,0.75,75,37.5\n1,,,\n", string(text))
	require.ErrorContains(t, WriteExercise(filepath.Join(path, "x"), nil, nil), "there is no directory")
	require.False(t, IsExercise("put.csv"))
}

// Extra fields are arrays of .vti files and columns of .csv files.
func TestExtraFields(t *testing.T) {
	p := &problem.Problem{Name: "p", Dimension: 1, N: [3]int{1, 1, 1}, Hi: problem.Point{2},
		Boundary: func(problem.Point) float64 { return 7 }}
	s := Solution{Problem: p, U: []float64{3}, Extra: []Extra{{"S1",
		func(q problem.Point) float64 { return 10 * q[0] }}}}
	path := filepath.Join(t.TempDir(), "u")
	require.NoError(t, Write(path+".csv", s))
	text, err := os.ReadFile(path + ".csv")
	require.NoError(t, err)
	require.Equal(t, "x,y,z,u,phi,S1\n0,0,0,7,,0\n1,0,0,3,,10\n2,0,0,7,,20\n", string(text))
	require.NoError(t, Write(path+".vti", s))
	text, err = os.ReadFile(path + ".vti")
	require.NoError(t, err)
	require.Contains(t, string(text),
		`<DataArray type="Float64" Name="S1" NumberOfComponents="1" format="appended" offset="43"/>`)
}
