package output

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/p2pdc/p2pdc/internal/npy"
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
	require.ErrorContains(t, CheckPath("x.pdv"), ".csv, .xdmf, .pvd")
}

// The extension before .pvd is the format of the steps. An .xdmf file is a series of its own.
func TestSeriesOfEveryFormat(t *testing.T) {
	for name, want := range map[string]string{
		"a.pvd": "a_1.vti", "b.vti.pvd": "b_1.vti", "c.VTU.pvd": "c_1.vtu", "d.vtp.PVD": "d_1.vtp", "e.x.pvd": "e.x_1.vti",
	} {
		path := filepath.Join(t.TempDir(), name)
		s, err := CreateSeries(path, 2)
		require.NoError(t, err)
		for m := range 3 {
			require.NoError(t, s.Add(m, float64(m), pressed(2)))
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var c collection
		require.NoError(t, xml.Unmarshal(text, &c))
		require.Equal(t, want, c.Sets[1].File)
		_, alone := write(t, "alone"+filepath.Ext(want), pressed(2))
		step, err := os.ReadFile(filepath.Join(filepath.Dir(path), want))
		require.NoError(t, err)
		require.Equal(t, alone, step)
	}
	s := pressed(2)
	require.False(t, IsSeriesOf("u.xdmf", s.Problem))
	s.Problem.Obstacle, s.Problem.Upper = nil, nil
	require.ErrorContains(t, CheckProblem("d.vtp.pvd", s.Problem), "no free boundary")
	require.NoError(t, CheckProblem("d.pvd", s.Problem))
}

func TestSeriesOfXDMF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.xdmf")
	s, err := CreateSeries(path, 11)
	require.NoError(t, err)
	for m := range 12 {
		u := pressed(1)
		u.U[0] = float64(m)
		require.NoError(t, s.Add(m, float64(m)/8, u))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var d struct {
			Grids []struct {
				Time struct {
					Value float64 `xml:"Value,attr"`
				} `xml:"Time"`
				Items []string `xml:"Attribute>DataItem"`
			} `xml:"Domain>Grid>Grid"`
		}
		require.NoError(t, xml.Unmarshal(text, &d))
		require.Len(t, d.Grids, m+1, "complete at any time")
		require.Equal(t, float64(m)/8, d.Grids[m].Time.Value)
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), d.Grids[m].Items[0]))
		require.NoError(t, err)
		array, err := npy.Decode(content)
		require.NoError(t, err)
		require.Equal(t, float64(m), array.At(1))
	}
	bad := pressed(1)
	bad.U = nil
	require.ErrorContains(t, s.Add(12, 2, bad), "0 values for a grid of 3 points")
}
