package output

import (
	"fmt"
	"io"
)

// writeVTI writes VTK's ImageData.
func writeVTI(w io.Writer, g *grid) error {
	extent := fmt.Sprintf("0 %d 0 %d 0 %d", g.nodes(0)-1, g.nodes(1)-1, g.nodes(2)-1)
	attributes := fmt.Sprintf(` WholeExtent="%s" Origin="%v %v %v" Spacing="%v %v %v"`, extent,
		g.p.Lo[0], g.p.Lo[1], g.p.Lo[2], g.spacing(0), g.spacing(1), g.spacing(2))
	return writeVTK(w, "ImageData", attributes, fmt.Sprintf("Extent=%q", extent), []section{pointData(g)})
}

// spacing returns the spacing of an axis, and 1 for an unused axis, because VTK requires a positive value.
func (g *grid) spacing(axis int) float64 {
	if axis >= g.p.Dimension {
		return 1
	}
	return g.p.Spacing(axis)
}
