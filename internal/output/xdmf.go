package output

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/internal/npy"
)

// XDMFExtension is the extension of a description in XML whose arrays are .npy files in the same directory: NAME.xdmf
// refers to NAME.u.npy, NAME.contact.npy and so on.
const XDMFExtension = ".xdmf"

// writeXDMF writes the arrays and then the description, which refers to complete arrays only.
func writeXDMF(path string, g *grid) error {
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	if err := writeArrays(stem, g); err != nil {
		return err
	}
	return Replace(path, func(w io.Writer) error { return writeDescription(w, xdmfGrid(stem, g, "")) })
}

// writeArrays writes every field of a grid to a .npy file.
func writeArrays(stem string, g *grid) error {
	for _, f := range fields(g) {
		err := Replace(arrayFile(stem, f), func(w io.Writer) error {
			if _, err := w.Write(f.header(g)); err != nil {
				return err
			}
			return f.write(w, g)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func arrayFile(stem string, f field) string { return stem + "." + f.name + ".npy" }

// ArrayOf returns which of the .xdmf files an output could be an array of, "" if none.
func ArrayOf(path string, all []string) string {
	name := filepath.Clean(path)
	for _, x := range all {
		stem := strings.TrimSuffix(filepath.Clean(x), filepath.Ext(x))
		if !isXDMF(x) || strings.ToLower(filepath.Ext(name)) != ".npy" {
			continue
		}
		if strings.HasPrefix(name, stem+".") && strings.Count(name[len(stem):], ".") == 2 ||
			strings.HasPrefix(name, stem+"_") {
			return x
		}
	}
	return ""
}

// header returns the header of a .npy file.
func (f field) header(g *grid) []byte {
	if f.bytes == 1 {
		return npy.HeaderOf("|u1", g.shape())
	}
	return npy.Header(g.shape())
}

var xmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")

// xdmfGrid returns the XML of a grid whose arrays writeArrays wrote, with an element for the time. XDMF counts
// axes from the slowest to the fastest.
func xdmfGrid(stem string, g *grid, time string) string {
	var b strings.Builder
	points := fmt.Sprintf("%d %d %d", g.nodes(2), g.nodes(1), g.nodes(0))
	fmt.Fprintf(&b, `    <Grid Name="grid" GridType="Uniform">
%s      <Topology TopologyType="3DCoRectMesh" Dimensions="%s"/>
      <Geometry GeometryType="ORIGIN_DXDYDZ">
        <DataItem Format="XML" NumberType="Float" Precision="8" Dimensions="3">%v %v %v</DataItem>
        <DataItem Format="XML" NumberType="Float" Precision="8" Dimensions="3">%v %v %v</DataItem>
      </Geometry>
`, time, points, g.p.Lo[2], g.p.Lo[1], g.p.Lo[0], g.spacing(2), g.spacing(1), g.spacing(0))
	for _, f := range fields(g) {
		kind := `NumberType="Float" Precision="8"`
		if f.bytes == 1 {
			kind = `NumberType="UChar" Precision="1"`
		}
		fmt.Fprintf(&b, `      <Attribute Name="%s" AttributeType="Scalar" Center="Node">
        <DataItem Format="Binary" %s Endian="Little" Seek="%d" Dimensions="%s">%s</DataItem>
      </Attribute>
`, xmlText.Replace(f.name), kind, len(f.header(g)), points, xmlText.Replace(filepath.Base(arrayFile(stem, f))))
	}
	b.WriteString("    </Grid>\n")
	return b.String()
}

func writeDescription(w io.Writer, grids ...string) error {
	parts := slices.Concat([]string{"<?xml version=\"1.0\"?>\n<Xdmf Version=\"2.0\">\n  <Domain>\n"}, grids,
		[]string{"  </Domain>\n</Xdmf>\n"})
	for _, p := range parts {
		if _, err := io.WriteString(w, p); err != nil {
			return err
		}
	}
	return nil
}
