package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pdc/p2pdc/internal/chart"
	"github.com/p2pdc/p2pdc/internal/output"
)

// efficiencyPlot returns an empty plot of efficiencies by the number of machines.
func efficiencyPlot(title, label string, machines []int) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "machines", label
	p.X.Scale = plot.LogScale{}
	p.Y.Min, p.Y.Max = 0, 1
	p.Add(plotter.NewGrid())
	var ticks []plot.Tick
	for _, m := range machines {
		ticks = append(ticks, plot.Tick{Value: float64(m), Label: fmt.Sprint(m)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	return p
}

// savePlot writes a plot to a file.
func savePlot(path string, p *plot.Plot, width, height vg.Length) error {
	return output.Replace(path, func(w io.Writer) error { return chart.Write(w, path, p, width, height) })
}

// drawScalings draws efficiencies by the number of machines. The colour of a curve is that of its
// cluster and grid; asynchronous schemes are dashed, hybrid ones dotted.
func drawScalings(path string, curves []scaling, values [][]float64) error {
	var machines []int
	for _, c := range curves {
		machines = append(machines, c.machines...)
	}
	slices.Sort(machines)
	p := efficiencyPlot("Efficiency of Richardson, simulated: boxes, overlap", "efficiency", slices.Compact(machines))
	p.Y.Max = 1.05
	p.Legend.Top, p.Legend.Padding = true, vg.Millimeter/2
	colours := []color.RGBA{{0, 114, 178, 255}, {0, 158, 115, 255}, {213, 94, 0, 255}, {204, 121, 167, 255}}
	dashes := map[string][]vg.Length{"async": {vg.Points(6), vg.Points(3)}, "hybrid": {vg.Points(2), vg.Points(2)}}
	colour := map[string]color.RGBA{}
	for i, c := range curves {
		var at plotter.XYs
		for k, m := range c.machines {
			at = append(at, plotter.XY{X: float64(m), Y: values[i][k]})
		}
		line, points, err := plotter.NewLinePoints(at)
		if err != nil {
			return fmt.Errorf("figure of efficiencies: %s, %d³: %w", c.cluster, c.side, err)
		}
		grid := fmt.Sprintf("%s, %d³", c.cluster, c.side)
		if _, known := colour[grid]; !known {
			colour[grid] = colours[len(colour)%len(colours)]
		}
		scheme := c.scheme(c.machines[0]).Name()
		line.Color, points.Color = colour[grid], colour[grid]
		points.Shape = draw.CircleGlyph{}
		line.Dashes = dashes[scheme]
		p.Add(line, points)
		p.Legend.Add(grid+", "+scheme, line, points)
	}
	p.X.Max *= 22 // room for the legend
	return savePlot(path, p, 17*vg.Centimeter, 12*vg.Centimeter)
}
