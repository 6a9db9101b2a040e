package figure

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Sample is a residual at a time.
type Sample struct{ Seconds, Residual float64 }

// blocks are the heights of a sparkline.
var blocks = []rune("▁▂▃▄▅▆▇█")

// Record appends a sample, unless its residual is unknown or that of the last one.
func Record(all []Sample, seconds, residual float64) []Sample {
	if !(residual > 0) || len(all) > 0 && all[len(all)-1].Residual == residual {
		return all
	}
	return append(all, Sample{seconds, residual})
}

// Row is a run in a figure.
type Row struct {
	Name      string
	Peers     int
	Residuals []Sample  // in order of time
	Shares    []float64 // of its time; nil: unknown
}

// Columns of the figures in text.
const (
	lineWidth = 40
	barWidth  = 20
)

// Draw draws the residual of every row against time, on one axis, and the shares of its time, each with its own
// character. legend explains them. Draw writes nothing if no residuals differ.
func Draw(w io.Writer, rows []Row, legend, characters string) {
	var all [][]Sample
	for _, r := range rows {
		all = append(all, r.Residuals)
	}
	until, low, high := span(all...)
	if !(until > 0) || !(high > low) {
		return
	}
	fmt.Fprintf(w, "residual, %.1g to %.1g, in 0 to %.3g s; %s\n", high, low, until, legend)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		shares := "unknown"
		if r.Shares != nil {
			shares = bar(barWidth, r.Shares, characters)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", r.Name, r.Peers, sparkline(r.Residuals, until, lineWidth, low, high), shares)
	}
	t.Flush()
}

// sparkline draws the logarithm of a residual against time, from 0 to until seconds in width columns, between the
// residuals low and high. Between samples, which are in order, it is a straight line; it ends with the last one.
func sparkline(all []Sample, until float64, width int, low, high float64) string {
	var out strings.Builder
	for i, next := 0, 0; i < width && len(all) > 0; i++ {
		at := until * (float64(i) + 0.5) / float64(width)
		for next < len(all) && all[next].Seconds < at {
			next++
		}
		switch {
		case next == len(all):
			return out.String()
		case next == 0:
			out.WriteRune(height(all[0].Residual, low, high))
		default:
			a, b := all[next-1], all[next]
			share := (at - a.Seconds) / (b.Seconds - a.Seconds)
			out.WriteRune(height(math.Exp(math.Log(a.Residual)+share*math.Log(b.Residual/a.Residual)), low, high))
		}
	}
	return out.String()
}

// span returns the end of the last sample, and the smallest and the largest residual.
func span(rows ...[]Sample) (until, low, high float64) {
	low = math.Inf(1)
	for _, row := range rows {
		for _, s := range row {
			until, low, high = max(until, s.Seconds), min(low, s.Residual), max(high, s.Residual)
		}
	}
	return until, low, high
}

func height(residual, low, high float64) rune {
	if !(residual > 0) || !(low > 0) || !(high > low) {
		return ' '
	}
	share := math.Log(residual/low) / math.Log(high/low)
	return blocks[min(max(int(share*float64(len(blocks))), 0), len(blocks)-1)]
}

// bar draws shares of a whole, each with its own character. Shares that are not positive have none.
func bar(width int, shares []float64, characters string) string {
	var out strings.Builder
	drawn, sum := 0, 0.0
	for i, c := range []rune(characters) {
		if i < len(shares) && shares[i] > 0 {
			sum = min(sum+shares[i], 1)
		}
		for ; drawn < int(math.Round(sum*float64(width))); drawn++ {
			out.WriteRune(c)
		}
	}
	return out.String()
}
