package output

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	pictureWidth  = 6 * vg.Inch
	pictureHeight = 5 * vg.Inch
	barWidth      = 0.9 * vg.Inch
	pictureDPI    = 150
	shades        = 255
)

// writePNG draws the solution: a curve in 1-D, a heat map with the outline of the contact set in 2-D, and
// the same of the middle plane z = const in 3-D.
func writePNG(w io.Writer, g *grid) error {
	canvas := vgimg.NewWith(vgimg.UseWH(pictureWidth, pictureHeight), vgimg.UseDPI(pictureDPI))
	var err error
	if g.p.Dimension == 1 {
		err = drawCurve(draw.New(canvas), g)
	} else {
		err = drawSlice(draw.New(canvas), g)
	}
	if err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

func drawCurve(c draw.Canvas, g *grid) error {
	p := plot.New()
	p.Title.Text = g.p.Name
	p.X.Label.Text, p.Y.Label.Text = "x", "u"
	var u, phi plotter.XYs
	_ = g.each(func(n node) error {
		u = append(u, plotter.XY{X: n.at[0], Y: n.u})
		if g.p.Obstacle != nil {
			phi = append(phi, plotter.XY{X: n.at[0], Y: g.p.Obstacle(n.at)})
		}
		return nil
	})
	if phi != nil {
		obstacle, err := plotter.NewLine(phi)
		if err != nil {
			return err
		}
		obstacle.Color = color.Gray{150}
		obstacle.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(obstacle)
		p.Legend.Add("obstacle", obstacle)
	}
	line, err := plotter.NewLine(u)
	if err != nil {
		return err
	}
	line.Color, line.Width = color.RGBA{R: 30, G: 80, B: 180, A: 255}, vg.Points(1.5)
	p.Add(line)
	p.Legend.Add("u", line)
	p.Draw(c)
	return nil
}

// slice is a plane of the closed grid with the methods that gonum's plotters need.
type slice struct {
	g        *grid
	k        int
	u        []float64
	contact  []bool
	min, max float64
}

func newSlice(g *grid) *slice {
	s := &slice{g: g, k: 1, min: math.Inf(1), max: math.Inf(-1)}
	if g.p.Dimension == 3 {
		s.k = (g.p.N[2] + 1) / 2
	}
	for j := g.first[1]; j <= g.last[1]; j++ {
		for i := g.first[0]; i <= g.last[0]; i++ {
			n := g.node(i, j, s.k)
			s.u = append(s.u, n.u)
			s.contact = append(s.contact, g.contact(n) != free)
			s.min, s.max = min(s.min, n.u), max(s.max, n.u)
		}
	}
	if !(s.max > s.min) { // the colour scale needs a range
		s.min, s.max = s.min-0.5, s.min+0.5
	}
	return s
}

func (s *slice) Dims() (columns, rows int)    { return s.g.nodes(0), s.g.nodes(1) }
func (s *slice) Z(column, row int) float64    { return s.u[row*s.g.nodes(0)+column] }
func (s *slice) X(column int) float64         { return s.g.p.At(column, 0, s.k)[0] }
func (s *slice) Y(row int) float64            { return s.g.p.At(0, row, s.k)[1] }
func (s *slice) touches(column, row int) bool { return s.contact[row*s.g.nodes(0)+column] }

func drawSlice(c draw.Canvas, g *grid) error {
	s := newSlice(g)
	if math.IsNaN(s.max) || math.IsInf(s.max-s.min, 0) {
		return fmt.Errorf("the values from %g to %g cannot be drawn", s.min, s.max)
	}
	colours := moreland.Kindlmann()
	colours.SetMin(s.min)
	colours.SetMax(s.max)

	p := plot.New()
	p.Title.Text = g.p.Name
	if g.p.Dimension == 3 {
		p.Title.Text += fmt.Sprintf(", z = %.4g", g.p.At(1, 1, s.k)[2])
	}
	p.Title.Text += " (red: border of the contact set)"
	p.X.Label.Text, p.Y.Label.Text = "x", "y"
	heat := plotter.NewHeatMap(s, colours.Palette(shades))
	heat.Min, heat.Max = s.min, s.max
	heat.Rasterized = true
	p.Add(heat, outline{s})

	bar := plot.New()
	bar.HideX()
	bar.Y.Padding = 0
	bar.Title.Text = "u"
	bar.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true})

	picture := draw.Crop(c, 0, -barWidth, 0, 0)
	p.Draw(square(picture, g))
	bar.Draw(draw.Crop(c, c.Max.X-c.Min.X-barWidth+vg.Points(6), -vg.Points(6), vg.Points(30), 0))
	return nil
}

// square crops the canvas so that x and y have approximately the same scale; the axis labels are not included.
func square(c draw.Canvas, g *grid) draw.Canvas {
	width, height := c.Max.X-c.Min.X, c.Max.Y-c.Min.Y
	aspect := vg.Length((g.p.Hi[1] - g.p.Lo[1]) / (g.p.Hi[0] - g.p.Lo[0]))
	aspect = min(max(aspect, 1./3), 3)
	if height > width*aspect {
		return draw.Crop(c, 0, 0, 0, width*aspect-height)
	}
	return draw.Crop(c, 0, min(0, height/aspect-width), 0, 0)
}

// outline draws the border of the contact set: in every cell whose corners differ, a line between the
// midpoints of the edges whose ends differ. Its red does not occur in the heat map.
type outline struct{ *slice }

func (o outline) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := draw.LineStyle{Color: color.RGBA{R: 240, G: 20, B: 60, A: 255}, Width: vg.Points(1)}
	columns, rows := o.Dims()
	for row := range rows - 1 {
		for column := range columns - 1 {
			crossings := o.crossings(column, row)
			for i := 0; i+1 < len(crossings); i += 2 {
				a, b := crossings[i], crossings[i+1]
				c.StrokeLine2(style, toX(a.X), toY(a.Y), toX(b.X), toY(b.Y))
			}
		}
	}
}

// crossings returns the midpoints of a cell's edges with one end in contact, in order around the cell.
func (o outline) crossings(column, row int) []plotter.XY {
	corners := [4][2]int{{column, row}, {column + 1, row}, {column + 1, row + 1}, {column, row + 1}}
	var mid []plotter.XY
	for i, a := range corners {
		b := corners[(i+1)%4]
		if o.touches(a[0], a[1]) != o.touches(b[0], b[1]) {
			mid = append(mid, plotter.XY{X: (o.X(a[0]) + o.X(b[0])) / 2, Y: (o.Y(a[1]) + o.Y(b[1])) / 2})
		}
	}
	return mid
}
