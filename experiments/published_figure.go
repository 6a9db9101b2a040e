package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
)

// figure5 draws the efficiency of the four columns, predicted as lines and published as points. The
// colours can be told apart with red-green colour blindness.
func figure5(path string, t published.Table) error {
	p := efficiencyPlot("Efficiency on Graphene: predicted (lines), published (points)",
		"efficiency 9523 s / (m t(m))", published.Machines[:])
	p.Legend.Left, p.Legend.YOffs = true, vg.Millimeter
	colours := [published.Columns]color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	}
	measured := published.Measured()
	for c := range published.Columns {
		line, err := plotter.NewLine(curve(&t, c))
		if err != nil {
			return fmt.Errorf("figure 5: %v: %w", c, err)
		}
		points, err := plotter.NewScatter(curve(&measured, c))
		if err != nil {
			return fmt.Errorf("figure 5: %v: %w", c, err)
		}
		line.Color, points.Color = colours[c], colours[c]
		points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(3)
		p.Add(line, points)
		p.Legend.Add(c.Curve(), line, points)
	}
	return savePlot(path, p, 15*vg.Centimeter, 11*vg.Centimeter)
}

// curve returns the efficiency of a column by machines.
func curve(t *published.Table, c published.Column) plotter.XYs {
	var out plotter.XYs
	for row, m := range published.Machines {
		efficiency := published.Efficiency(m, t.At(published.Cell{Column: c, Row: row}))
		out = append(out, plotter.XY{X: float64(m), Y: efficiency})
	}
	return out
}
