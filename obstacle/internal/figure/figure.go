// Package figure draws efficiency against the number of peers, as figure 5 of the 2013 paper does.
package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pdc/p2pdc/internal/chart"
)

// Point is an efficiency, as a fraction of 1, with its spread.
type Point struct {
	Peers          int
	Low, Mid, High float64
}

// Series is the line of one scheme.
type Series struct {
	Name   string
	Points []Point
}

// Append adds a point to the series of that name, and the series if it is missing, which then begins with the points
// of first.
func Append(all []Series, name string, p Point, first ...Point) []Series {
	i := slices.IndexFunc(all, func(s Series) bool { return s.Name == name })
	if i < 0 {
		i, all = len(all), append(all, Series{Name: name, Points: first})
	}
	all[i].Points = append(all[i].Points, p)
	return all
}

// Check returns an error unless the name has the extension of a figure.
func Check(name string) error {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".png", ".svg", ".pdf":
		return nil
	default:
		return fmt.Errorf("--out %s: a figure is .png, .svg or .pdf, not %q", name, ext)
	}
}

// colours returns colours that people with red-green blindness can distinguish.
func colours() []color.RGBA {
	return []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{86, 180, 233, 255}}
}

// Write draws the series in the format of the extension of name.
func Write(w io.Writer, name, title string, all []Series) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "peers"
	p.Y.Label.Text = "efficiency: time of all peers together / time"
	p.Y.Min, p.Y.Max = 0, 1.05
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	var ticks []plot.Tick
	seen := map[int]bool{}
	fewest, most := math.MaxInt, 0
	for i, s := range all {
		for _, q := range s.Points {
			fewest, most = min(fewest, q.Peers), max(most, q.Peers)
			p.Y.Max = max(p.Y.Max, q.High*1.05)
			if !seen[q.Peers] {
				seen[q.Peers] = true
				ticks = append(ticks, plot.Tick{Value: float64(q.Peers), Label: fmt.Sprint(q.Peers)})
			}
		}
		if err := add(p, s, i); err != nil {
			return err
		}
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	if fewest > 0 && most >= wide*fewest {
		p.X.Scale = plot.LogScale{}
		p.X.Min, p.X.Max = p.X.Min/1.1, p.X.Max*1.1
	} else {
		p.X.Min, p.X.Max = p.X.Min-0.2, p.X.Max+0.2
	}
	return chart.Write(w, name, p, 14*vg.Centimeter, 10*vg.Centimeter)
}

// wide is the ratio of the largest to the smallest number of peers from which the axis is logarithmic.
const wide = 8

// spread implements the interfaces of gonum's error bars.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

func add(p *plot.Plot, s Series, i int) error {
	c := colours()[i%len(colours())]
	var d spread
	for _, q := range s.Points {
		d.XYs = append(d.XYs, plotter.XY{X: float64(q.Peers) * (1 + 0.004*float64(i)), Y: q.Mid})
		d.YErrors = append(d.YErrors, struct{ Low, High float64 }{q.Mid - q.Low, q.High - q.Mid})
	}
	line, points, err := plotter.NewLinePoints(d.XYs)
	if err != nil {
		return fmt.Errorf("figure: %s: %w", s.Name, err)
	}
	bars, err := plotter.NewYErrorBars(d)
	if err != nil {
		return fmt.Errorf("figure: %s: %w", s.Name, err)
	}
	line.Color = c
	points.Color = c
	bars.Color = c
	points.Shape = draw.CircleGlyph{}
	if again := i / len(colours()); again > 0 { // another line has this colour
		line.Dashes, points.Shape = plotutil.Dashes(again), plotutil.Shape(again)
	}
	p.Add(line, points, bars)
	p.Legend.Add(s.Name, line, points)
	return nil
}
