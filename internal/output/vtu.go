package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// vtkCells are VTK's cells by dimension: line, quadrilateral, hexahedron. Bit a of a corner is its offset along axis a.
var vtkCells = [4]struct {
	kind    byte
	corners []int
}{
	1: {3, []int{0, 1}},
	2: {9, []int{0, 1, 3, 2}},
	3: {12, []int{0, 1, 3, 2, 4, 5, 7, 6}},
}

// writeVTU writes VTK's UnstructuredGrid: the cells of the closed grid as lines, quadrilaterals or hexahedra. Besides
// the fields it has the cell data contact: 1 or 2 if all corners of a cell are on that obstacle, else 0.
func writeVTU(w io.Writer, g *grid) error {
	cell := vtkCells[g.p.Dimension]
	count, corners := g.cells(), len(cell.corners)
	piece := fmt.Sprintf(`NumberOfPoints="%d" NumberOfCells="%d"`, g.count(), count)
	return writeVTK(w, "UnstructuredGrid", "", piece, []section{
		pointData(g),
		{"CellData", ` Scalars="contact"`, []dataArray{{"contact", "UInt8", 1, count, g.writeCellContact}}},
		{"Points", "", []dataArray{{"Points", "Float64", 3, 24 * g.count(), g.writePositions}}},
		{"Cells", "", []dataArray{
			{"connectivity", "Int64", 1, 8 * corners * count, g.writeConnectivity},
			{"offsets", "Int64", 1, 8 * count, func(w io.Writer) error {
				out := intWriter{w: w}
				return g.eachCell(func(c int, _ [3]int) error { return out.write((c + 1) * corners) })
			}},
			{"types", "UInt8", 1, count, func(w io.Writer) error {
				kind := []byte{cell.kind}
				return g.eachCell(func(int, [3]int) error { _, err := w.Write(kind); return err })
			}},
		}},
	})
}

// intWriter writes little-endian int64 values without an allocation for each.
type intWriter struct {
	w io.Writer
	b [8]byte
}

func (i *intWriter) write(v int) error {
	binary.LittleEndian.PutUint64(i.b[:], uint64(v))
	_, err := i.w.Write(i.b[:])
	return err
}

// intervals returns the number of cells along an axis: 1 for an unused one.
func (g *grid) intervals(axis int) int { return max(1, g.nodes(axis)-1) }

func (g *grid) cells() int { return g.intervals(0) * g.intervals(1) * g.intervals(2) }

// eachCell visits the cells with their numbers and lowest corners, x fastest, until an error.
func (g *grid) eachCell(visit func(number int, base [3]int) error) error {
	number := 0
	for k := range g.intervals(2) {
		for j := range g.intervals(1) {
			for i := range g.intervals(0) {
				if err := visit(number, [3]int{i, j, k}); err != nil {
					return err
				}
				number++
			}
		}
	}
	return nil
}

// index returns the number of a node, given by indices from 0 along each axis, in memory order.
func (g *grid) index(n [3]int) int { return n[0] + g.nodes(0)*(n[1]+g.nodes(1)*n[2]) }

func (g *grid) writePositions(w io.Writer) error {
	var b [24]byte
	return g.each(func(n node) error {
		for a, x := range n.at {
			binary.LittleEndian.PutUint64(b[8*a:], math.Float64bits(x))
		}
		_, err := w.Write(b[:])
		return err
	})
}

func (g *grid) writeConnectivity(w io.Writer) error {
	out := intWriter{w: w}
	return g.eachCell(func(_ int, base [3]int) error {
		for _, bits := range vtkCells[g.p.Dimension].corners {
			if err := out.write(g.index(corner(base, bits))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *grid) writeCellContact(w io.Writer) error {
	contact, value := newLayers(g), make([]byte, 1)
	return g.eachCell(func(_ int, base [3]int) error {
		side := contact.at(base)
		for bits := 1; bits < 1<<g.p.Dimension; bits++ {
			if contact.at(corner(base, bits)) != side {
				side = free
			}
		}
		value[0] = side
		_, err := w.Write(value)
		return err
	})
}
