package output

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// cellsOf returns the corners of the cells of a .vtu file and their contact.
func cellsOf(t *testing.T, content []byte) (cells [][]int, contact []byte) {
	type array struct {
		Name   string `xml:"Name,attr"`
		Offset int    `xml:"offset,attr"`
	}
	var f struct {
		Piece struct {
			Cell  []array `xml:"CellData>DataArray"`
			Cells []array `xml:"Cells>DataArray"`
		} `xml:"UnstructuredGrid>Piece"`
	}
	mark := bytes.Index(content, []byte("\n_")) + 1
	require.NoError(t, xml.Unmarshal([]byte(string(content[:mark])+"</AppendedData></VTKFile>"), &f))
	raw := func(a array, name string) []byte {
		require.Equal(t, name, a.Name)
		data := content[mark+1+a.Offset:]
		return data[8:][:binary.LittleEndian.Uint64(data)]
	}
	corners, from := raw(f.Piece.Cells[0], "connectivity"), 0
	for ends := raw(f.Piece.Cells[1], "offsets"); len(ends) > 0; ends = ends[8:] {
		var c []int
		for end := int(binary.LittleEndian.Uint64(ends)); from < end; from++ {
			c = append(c, int(binary.LittleEndian.Uint64(corners[8*from:])))
		}
		cells = append(cells, c)
	}
	require.Len(t, corners, 8*from)
	return cells, raw(f.Piece.Cell[0], "contact")
}

// The cells of a .vtu file fill the domain: each has the measure of a cell of the grid, by the formula for VTK's order
// of corners. A cell is in contact if all its corners are.
func TestVTU(t *testing.T) {
	for d := 1; d <= 3; d++ {
		s := pressed(d)
		_, content := write(t, "u.vtu", s)
		cells, contact := cellsOf(t, content)
		u, at := closed(s)
		want := 1
		for a := range d {
			want *= s.Problem.N[a] + 1
		}
		require.Len(t, cells, want)
		require.Len(t, contact, want)
		kinds := map[byte]int{}
		for i, c := range cells {
			require.Len(t, c, 1<<d)
			require.InDelta(t, s.Problem.Spacing(0)*at1(s, 1, d)*at1(s, 2, d), volume(at, c), 1e-12)
			sides := map[byte]bool{}
			for _, n := range c {
				sides[map[float64]byte{-1e9: onObstacle, 1e9: onUpper}[u[n]]] = true
			}
			require.Equal(t, len(sides) == 1 && !sides[free], contact[i] != free)
			require.True(t, contact[i] == free || sides[contact[i]])
			kinds[contact[i]]++
		}
		require.Greater(t, len(kinds), 1, "cells in contact")
	}
}

func at1(s Solution, axis, dimension int) float64 {
	if axis >= dimension {
		return 1
	}
	return s.Problem.Spacing(axis)
}

// volume returns the length, area or volume of a cell with VTK's order of corners, which is negative if they are in
// the opposite order.
func volume(at []problem.Point, c []int) float64 {
	if len(c) == 2 {
		return at[c[1]][0] - at[c[0]][0]
	}
	area := 0.0 // of the lower face, by the shoelace formula
	for i := range 4 {
		p, q := at[c[i]], at[c[(i+1)%4]]
		area += (p[0]*q[1] - q[0]*p[1]) / 2
	}
	if len(c) == 4 {
		return area
	}
	for i := range 4 { // the upper face has the same order
		if p, q := at[c[i]], at[c[i+4]]; p[0] != q[0] || p[1] != q[1] {
			return 0
		}
	}
	return area * (at[c[4]][2] - at[c[0]][2])
}

type description struct {
	Grids []struct {
		Time struct {
			Value float64 `xml:"Value,attr"`
		} `xml:"Time"`
		Attributes []struct {
			Name string `xml:"Name,attr"`
			Item struct {
				Text       string `xml:",chardata"`
				Seek       int    `xml:"Seek,attr"`
				Dimensions string `xml:"Dimensions,attr"`
			} `xml:"DataItem"`
		} `xml:"Attribute"`
	} `xml:"Domain>Grid"`
}

// Every array of an .xdmf file is a .npy file, whose data start at Seek.
func TestXDMF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a & b.XDMF")
	s := pressed(2)
	require.NoError(t, Write(path, s))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), ">0 -1 -1</DataItem>", "origin from z to x")
	require.Contains(t, string(text), ">1 0.6 0.5</DataItem>", "spacing from z to x")
	var d description
	require.NoError(t, xml.Unmarshal(text, &d))
	names := []string{}
	u, _ := closed(s)
	for _, a := range d.Grids[0].Attributes {
		names = append(names, a.Name)
		require.Equal(t, "a & b."+a.Name+".npy", a.Item.Text)
		require.Equal(t, "1 6 5", a.Item.Dimensions)
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), a.Item.Text))
		require.NoError(t, err)
		array, err := npy.Decode(content)
		require.NoError(t, err)
		require.Equal(t, []int{6, 5}, array.Shape)
		require.Equal(t, len(content)-len(u)*map[string]int{"float64": 8, "uint8": 1}[array.Type], a.Item.Seek)
		for i := range u {
			switch a.Name {
			case "u":
				require.Equal(t, u[i], array.At(i))
			case "contact":
				require.Equal(t, map[float64]float64{-1e9: onObstacle, 1e9: onUpper}[u[i]], array.At(i))
			}
		}
	}
	require.Equal(t, []string{"u", "contact", "obstacle", "upper", "force"}, names)
	require.ErrorContains(t, Write(filepath.Join(path, "u.xdmf"), s), "there is no directory")
}

func TestArrayOf(t *testing.T) {
	all := []string{"d/u.vti", "d/u.XDMF", "v.xdmf"}
	for path, want := range map[string]string{
		"d/u.contact.npy": "d/u.XDMF", "d//u.u.NPY": "d/u.XDMF", "d/u_03.u.npy": "d/u.XDMF", "./v.u.npy": "v.xdmf",
		"u.u.npy": "", "d/u.npy": "", "d/u.png": "", "d/uv.u.npy": "", "d/u.vti": "", "d/u.contact.csv": "",
	} {
		require.Equal(t, want, ArrayOf(path, all), path)
	}
}

// The two held planes give the contact of every node in any order.
func TestLayers(t *testing.T) {
	s := pressed(3)
	g, err := newGrid(s)
	require.NoError(t, err)
	l := newLayers(g)
	rapid.Check(t, func(t *rapid.T) {
		var n [3]int
		for a := range n {
			n[a] = rapid.IntRange(0, g.nodes(a)-1).Draw(t, "index")
		}
		require.Equal(t, g.contact(g.node(n[0], n[1], n[2])), l.at(n))
	})
}

// Writers do not copy the grid: they allocate less than an eighth of the bytes of u, the surface included.
func TestWritersStream(t *testing.T) {
	const n = 64
	p := &problem.Problem{
		Name: "large", Dimension: 3, N: [3]int{n, n, n}, Hi: problem.Point{1, 1, 1},
		Obstacle: func(q problem.Point) float64 {
			return 0.0008 - (q[0]-0.5)*(q[0]-0.5) - (q[1]-0.5)*(q[1]-0.5) - (q[2]-0.5)*(q[2]-0.5)
		},
		Boundary: func(problem.Point) float64 { return 0 },
	}
	g, err := newGrid(Solution{Problem: p, U: make([]float64, p.Points())})
	require.NoError(t, err)
	for name, write := range map[string]writer{"npy": writeNPY, "vti": writeVTI, "vtu": writeVTU, "vtp": writeVTP} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, write(io.Discard, g))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(g.count()), name)
	}
}
