package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// writeVTI writes VTK's ImageData (the XML format of VTK 1.0 files, raw appended
// data): point data u, obstacle, upper (each where the problem has it), contact (0
// free, 1 on the obstacle, 2 on the upper one) and force where it was found. Values go out as they
// are computed; nothing is held.
func writeVTI(w io.Writer, g *grid) error {
	arrays := []struct {
		name, kind string
		bytes      int
		write      func(node, []byte)
	}{
		{"u", "Float64", 8, func(n node, b []byte) { putFloat(b, n.u) }},
		{"contact", "UInt8", 1, func(n node, b []byte) { b[0] = g.contact(n) }},
	}
	if g.p.Obstacle != nil {
		arrays = append(arrays, arrays[0])
		arrays[2].name, arrays[2].write = "obstacle", func(n node, b []byte) { putFloat(b, g.p.Obstacle(n.at)) }
	}
	if g.p.Upper != nil {
		arrays = append(arrays, arrays[0])
		last := &arrays[len(arrays)-1]
		last.name, last.write = "upper", func(n node, b []byte) { putFloat(b, g.p.Upper(n.at)) }
	}
	if g.force != nil {
		arrays = append(arrays, arrays[0])
		last := &arrays[len(arrays)-1]
		last.name, last.write = "force", func(n node, b []byte) { putFloat(b, g.forceAt(n)) }
	}
	for _, e := range g.extra {
		arrays = append(arrays, arrays[0])
		last := &arrays[len(arrays)-1]
		last.name, last.write = e.Name, func(n node, b []byte) { putFloat(b, e.Of(n.at)) }
	}
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
		fmt.Fprintf(&head, "        <DataArray type=%q Name=%q format=\"appended\" offset=\"%d\"/>\n", a.kind, a.name, offset)
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

// forceAt is the contact force; points of the boundary are no unknowns and have none.
func (g *grid) forceAt(n node) float64 {
	if n.boundary {
		return 0
	}
	return g.force[g.dense(n)]
}

func putFloat(b []byte, v float64) { binary.LittleEndian.PutUint64(b, math.Float64bits(v)) }

// spacing of an unused axis is 1: VTK wants a positive one.
func (g *grid) spacing(axis int) float64 {
	if axis >= g.p.Dimension {
		return 1
	}
	return g.p.Spacing(axis)
}
