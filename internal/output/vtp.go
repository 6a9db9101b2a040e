package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// writeVTP writes the free boundary as VTK's PolyData (XML format with raw appended data): triangles in 3-D,
// closed lines in 2-D, points in 1-D. The point data are u; the cell data are contact (1 on the obstacle, 2
// on the upper obstacle).
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
	var a appended
	corners, ends := connectivity(cells)
	for _, v := range []any{s.points, s.value, corners, ends, sides} {
		a.add(v)
	}

	var head strings.Builder
	fmt.Fprintf(&head, `<?xml version="1.0"?>
<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <PolyData>
    <Piece NumberOfPoints="%d"`, len(s.points))
	for _, k := range []string{"Verts", "Lines", "Strips", "Polys"} {
		count := 0
		if k == kind {
			count = len(cells)
		}
		fmt.Fprintf(&head, " NumberOf%s=\"%d\"", k, count)
	}
	const array = "<DataArray type=%q Name=%q %sformat=\"appended\" offset=\"%d\"/>\n"
	head.WriteString(">\n      <PointData Scalars=\"u\">\n        ")
	fmt.Fprintf(&head, array, "Float64", "u", "", a.offsets[1])
	head.WriteString("      </PointData>\n      <CellData>\n        ")
	fmt.Fprintf(&head, array, "UInt8", "contact", "", a.offsets[4])
	head.WriteString("      </CellData>\n      <Points>\n        ")
	fmt.Fprintf(&head, array, "Float64", "Points", "NumberOfComponents=\"3\" ", a.offsets[0])
	fmt.Fprintf(&head, "      </Points>\n      <%s>\n        ", kind)
	fmt.Fprintf(&head, array, "Int64", "connectivity", "", a.offsets[2])
	head.WriteString("        ")
	fmt.Fprintf(&head, array, "Int64", "offsets", "", a.offsets[3])
	fmt.Fprintf(&head, "      </%s>\n    </Piece>\n  </PolyData>\n  <AppendedData encoding=\"raw\">\n_", kind)
	for _, part := range [][]byte{[]byte(head.String()), a.data, []byte("\n  </AppendedData>\n</VTKFile>\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
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

// appended holds the raw arrays of a VTK file, each after its length in bytes.
type appended struct {
	data    []byte
	offsets []int
}

// add adds a slice of values of fixed size.
func (a *appended) add(v any) {
	a.offsets = append(a.offsets, len(a.data))
	a.data = binary.LittleEndian.AppendUint64(a.data, uint64(binary.Size(v)))
	a.data, _ = binary.Append(a.data, binary.LittleEndian, v) // fails for values of no fixed size only
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
