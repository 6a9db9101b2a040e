package output

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// writeVTP writes the free boundary as VTK's PolyData: triangles in 3-D, closed lines in 2-D, points in 1-D. The
// point data are u and, where they exist, obstacle and upper; the cell data are contact (1 on the obstacle, 2 on the
// upper obstacle).
func writeVTP(w io.Writer, g *grid) error {
	s := freeBoundary(g)
	kind, sides := []string{"Verts", "Lines", "Polys"}[g.p.Dimension-1], s.side
	cells := make([][]int, 0, len(s.cells))
	for _, c := range s.cells {
		cells = append(cells, slices.Clone(c[:g.p.Dimension]))
	}
	if g.p.Dimension == 2 {
		cells, sides = s.loops()
	}
	corners, ends := connectivity(cells)
	piece := fmt.Sprintf(`NumberOfPoints="%d"`, len(s.points))
	for _, k := range []string{"Verts", "Lines", "Strips", "Polys"} {
		count := 0
		if k == kind {
			count = len(cells)
		}
		piece += fmt.Sprintf(` NumberOf%s="%d"`, k, count)
	}
	points := section{"PointData", ` Scalars="u"`, []dataArray{fixed("u", "Float64", 1, s.value)}}
	for _, f := range []Extra{{"obstacle", g.p.Obstacle}, {"upper", g.p.Upper}} {
		if f.Of != nil {
			points.arrays = append(points.arrays, fixed(f.Name, "Float64", 1, s.sample(f.Of)))
		}
	}
	return writeVTK(w, "PolyData", "", piece, []section{
		points,
		{"CellData", ` Scalars="contact"`, []dataArray{fixed("contact", "UInt8", 1, sides)}},
		{"Points", "", []dataArray{fixed("Points", "Float64", 3, s.coordinates())}},
		{kind, "", []dataArray{fixed("connectivity", "Int64", 1, corners), fixed("offsets", "Int64", 1, ends)}},
	})
}

// coordinates returns x, y and z of every point.
func (s *surface) coordinates() []float64 {
	all := make([]float64, 0, 3*len(s.points))
	for _, p := range s.points {
		all = append(all, p[:]...)
	}
	return all
}

// sample returns the values of a function at the points.
func (s *surface) sample(f problem.Function) []float64 {
	values := make([]float64, 0, len(s.points))
	for _, p := range s.points {
		values = append(values, f(p))
	}
	return values
}

// connectivity returns the corners of all cells, and the end index of each cell.
func connectivity(cells [][]int) (corners, ends []int64) {
	for _, c := range cells {
		for _, i := range c {
			corners = append(corners, int64(i))
		}
		ends = append(ends, int64(len(corners)))
	}
	return corners, ends
}

// ContourExtension is the extension of files with the free boundary of a 2-D problem as a table.
const ContourExtension = ".contour.csv"

// writeContour writes the free boundary of a 2-D problem: a line contour,contact,x,y,u for each point of each
// closed curve. The contact set is on the left of the curve, and the first point is repeated at the end.
func writeContour(w io.Writer, g *grid) error {
	s := freeBoundary(g)
	curves, sides := s.loops()
	line := []byte("contour,contact,x,y,u\n")
	for c, curve := range curves {
		for _, i := range curve {
			line = strconv.AppendInt(line, int64(c), 10)
			line = strconv.AppendInt(append(line, ','), int64(sides[c]), 10)
			for _, v := range []float64{s.points[i][0], s.points[i][1], s.value[i]} {
				line = strconv.AppendFloat(append(line, ','), v, 'g', -1, 64)
			}
			line = append(line, '\n')
		}
	}
	_, err := w.Write(line)
	return err
}
