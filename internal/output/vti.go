package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

type vtiArray struct {
	name, kind string
	bytes      int
	write      func(node, []byte)
}

// vtiArrays returns the point data u, contact (0 free, 1 on the obstacle, 2 on the upper obstacle) and,
// where they exist, obstacle, upper, force and the extra fields.
func vtiArrays(g *grid) []vtiArray {
	var arrays []vtiArray
	add := func(name string, value func(node) float64) {
		write := func(n node, b []byte) { binary.LittleEndian.PutUint64(b, math.Float64bits(value(n))) }
		arrays = append(arrays, vtiArray{name, "Float64", 8, write})
	}
	add("u", func(n node) float64 { return n.u })
	arrays = append(arrays, vtiArray{"contact", "UInt8", 1, func(n node, b []byte) { b[0] = g.contact(n) }})
	if g.p.Obstacle != nil {
		add("obstacle", func(n node) float64 { return g.p.Obstacle(n.at) })
	}
	if g.p.Upper != nil {
		add("upper", func(n node) float64 { return g.p.Upper(n.at) })
	}
	if g.force != nil {
		add("force", g.forceAt)
	}
	for _, e := range g.extra {
		add(e.Name, func(n node) float64 { return e.Of(n.at) })
	}
	return arrays
}

// writeVTI writes VTK's ImageData: the XML format of VTK 1.0 files with raw appended data. Values are
// written as they are computed.
func writeVTI(w io.Writer, g *grid) error {
	arrays := vtiArrays(g)
	extent := fmt.Sprintf("0 %d 0 %d 0 %d", g.nodes(0)-1, g.nodes(1)-1, g.nodes(2)-1)
	var head strings.Builder
	fmt.Fprintf(&head, `<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="%s" Origin="%v %v %v" Spacing="%v %v %v">
    <Piece Extent="%s">
      <PointData Scalars="u">
`, extent, g.p.Lo[0], g.p.Lo[1], g.p.Lo[2], g.spacing(0), g.spacing(1), g.spacing(2), extent)
	offset := 0
	for _, a := range arrays {
		fmt.Fprintf(&head, "        <DataArray type=%q Name=%q format=\"appended\" offset=\"%d\"/>\n", a.kind, a.name,
			offset)
		offset += 8 + a.bytes*g.count()
	}
	head.WriteString("      </PointData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n_")
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	for _, a := range arrays {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(a.bytes*g.count()))
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
		err := g.each(func(n node) error {
			a.write(n, b[:a.bytes])
			_, err := w.Write(b[:a.bytes])
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n  </AppendedData>\n</VTKFile>\n")
	return err
}

// forceAt returns the contact force, which is 0 on the boundary.
func (g *grid) forceAt(n node) float64 {
	if n.boundary {
		return 0
	}
	return g.force[g.p.Dense(n.idx)]
}

// spacing returns the spacing of an axis, and 1 for an unused axis, because VTK requires a positive value.
func (g *grid) spacing(axis int) float64 {
	if axis >= g.p.Dimension {
		return 1
	}
	return g.p.Spacing(axis)
}
