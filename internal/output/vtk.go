package output

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// dataArray is an array of a VTK file.
type dataArray struct {
	name, kind string // kind is VTK's name of the type
	components int
	bytes      int // of all values
	write      func(io.Writer) error
}

// section is an XML element with the arrays that belong to it.
type section struct {
	name, attributes string
	arrays           []dataArray
}

// pointData returns the section with the fields of a grid.
func pointData(g *grid) section {
	s := section{name: "PointData", attributes: ` Scalars="u"`}
	for _, f := range fields(g) {
		kind := map[int]string{8: "Float64", 1: "UInt8"}[f.bytes]
		write := func(w io.Writer) error { return f.write(w, g) }
		s.arrays = append(s.arrays, dataArray{f.name, kind, 1, f.bytes * g.count(), write})
	}
	return s
}

// fixed returns an array of values of fixed size that are in memory.
func fixed[T int64 | float64 | uint8](name, kind string, components int, values []T) dataArray {
	return dataArray{name, kind, components, binary.Size(values), func(w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, values)
	}}
}

// writeVTK writes a file of one piece: VTK's XML format of version 1.0, with raw appended data. Values are written as
// they are computed.
func writeVTK(w io.Writer, kind, attributes, piece string, sections []section) error {
	var head strings.Builder
	fmt.Fprintf(&head, `<?xml version="1.0"?>
<VTKFile type="%[1]s" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <%[1]s%[2]s>
    <Piece %[3]s>
`, kind, attributes, piece)
	offset := 0
	for _, s := range sections {
		fmt.Fprintf(&head, "      <%s%s>\n", s.name, s.attributes)
		for _, a := range s.arrays {
			fmt.Fprintf(&head, "        <DataArray type=%q Name=%q NumberOfComponents=\"%d\" "+
				"format=\"appended\" offset=\"%d\"/>\n", a.kind, a.name, a.components, offset)
			offset += 8 + a.bytes
		}
		fmt.Fprintf(&head, "      </%s>\n", s.name)
	}
	fmt.Fprintf(&head, "    </Piece>\n  </%s>\n  <AppendedData encoding=\"raw\">\n_", kind)
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	for _, s := range sections {
		for _, a := range s.arrays {
			if err := binary.Write(w, binary.LittleEndian, uint64(a.bytes)); err != nil {
				return err
			}
			if err := a.write(w); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, "\n  </AppendedData>\n</VTKFile>\n")
	return err
}
