package output

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// collection is the part of a .pvd file that ParaView reads.
type collection struct {
	Type string `xml:"type,attr"`
	Sets []struct {
		Time float64 `xml:"timestep,attr"`
		File string  `xml:"file,attr"`
	} `xml:"Collection>DataSet"`
}

func TestSeries(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, `a "b" & c.pvd`)
	s, err := CreateSeries(path, 300)
	require.NoError(t, err)
	p := &problem.Problem{Name: "x", Dimension: 1, N: [3]int{2, 1, 1}, Hi: problem.Point{1},
		Boundary: func(problem.Point) float64 { return 0 }}
	read := func() collection {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var c collection
		require.NoError(t, xml.Unmarshal(text, &c))
		require.Equal(t, "Collection", c.Type)
		return c
	}
	for m := range 301 {
		require.NoError(t, s.Add(m, float64(m)/10, Solution{Problem: p, U: []float64{float64(m), 2}}))
		if m < eachStep {
			require.Len(t, read().Sets, m+1, "complete at any time")
		}
	}
	require.NoError(t, s.Close())
	c := read()
	require.Len(t, c.Sets, 301)
	require.Equal(t, 1.7, c.Sets[17].Time)
	require.Equal(t, `a "b" & c_017.vti`, c.Sets[17].File)
	for _, d := range c.Sets {
		require.FileExists(t, filepath.Join(folder, d.File))
	}
	require.Len(t, s.steps, 301)
	require.Error(t, s.Add(301, 31, Solution{Problem: p}))
	require.Len(t, read().Sets, 301)
}

func TestSeriesRefusesBadPaths(t *testing.T) {
	_, err := CreateSeries(filepath.Join(t.TempDir(), "none", "x.pvd"), 3)
	require.ErrorContains(t, err, "there is no directory")
	require.NoError(t, CheckPath(filepath.Join(t.TempDir(), "x.PVD")))
	require.ErrorContains(t, CheckPath("x.pdv"), ".csv, .pvd")
}
