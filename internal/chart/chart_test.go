package chart

import (
	"bytes"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Nothing is drawn at the edges, and a long title is complete.
func TestFiguresAreCompleteAtTheirEdges(t *testing.T) {
	for _, title := range []string{"short", strings.Repeat("a rather long title; ", 12)} {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "peers", "efficiency"
		p.Y.Max = 1
		p.Add(plotter.NewGrid())
		line, points, err := plotter.NewLinePoints(plotter.XYs{{X: 1, Y: 1}, {X: 64, Y: 0}})
		require.NoError(t, err)
		p.Add(line, points)
		p.Legend.Add("a name in the legend", line, points)
		var file bytes.Buffer
		require.NoError(t, Write(&file, "figure.PNG", p, 10*vg.Centimeter, 7*vg.Centimeter))
		for _, line := range strings.Split(p.Title.Text, "\n") {
			require.LessOrEqual(t, p.Title.TextStyle.Width(line), 10*vg.Centimeter-2*margin)
		}
		require.Equal(t, strings.Fields(title), strings.Fields(p.Title.Text))
		m, err := png.Decode(&file)
		require.NoError(t, err)
		const edge = 4 // pixels
		inner := m.Bounds().Inset(edge)
		ink := 0
		for y := range m.Bounds().Dy() {
			for x := range m.Bounds().Dx() {
				if color.GrayModel.Convert(m.At(x, y)).(color.Gray).Y == 255 {
					continue
				}
				ink++
				require.True(t, x >= inner.Min.X && x < inner.Max.X && y >= inner.Min.Y && y < inner.Max.Y, "ink at %d, %d", x, y)
			}
		}
		require.Greater(t, ink, 1000)
	}
}
