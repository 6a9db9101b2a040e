// Package chart writes plots with a margin, so that nothing lies at the edge of the picture.
package chart

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// margin is the space around a plot.
const margin = 3 * vg.Millimeter

// Write writes a plot in the format of the extension of name. A title that is too long is broken into lines.
func Write(w io.Writer, name string, p *plot.Plot, width, height vg.Length) error {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	c, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	p.Title.Text = wrap(p.Title.Text, width-2*margin, p.Title.TextStyle.Width)
	p.Draw(draw.Crop(draw.New(c), margin, -margin, margin, -margin))
	_, err = c.WriteTo(w)
	return err
}

// wrap breaks a text between words into lines of at most a width, as far as words allow.
func wrap(text string, width vg.Length, of func(line string) vg.Length) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if longer := strings.TrimSpace(line + " " + word); line == "" || of(longer) <= width {
			line = longer
			continue
		}
		lines, line = append(lines, line), word
	}
	return strings.Join(append(lines, line), "\n")
}
