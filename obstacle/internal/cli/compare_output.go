package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// comparisonFiles are the files that a comparison writes: figures and tables.
type comparisonFiles struct {
	out        []string // each in the format of its extension
	csv, latex string   // tables with any name
}

func (f *comparisonFiles) flags(set *pflag.FlagSet) {
	set.StringVar(&f.csv, "csv", "", "with --model: write the table to this file")
	set.StringVar(&f.latex, "latex", "", "write the table as LaTeX to this file")
	set.StringArrayVar(&f.out, "out", nil,
		"write a figure of the efficiency (.png, .svg, .pdf) or a table (.tex, with --model also .csv); repeatable")
}

// names returns the names of all files.
func (f *comparisonFiles) names() []string {
	return slices.DeleteFunc(append(slices.Clone(f.out), f.csv, f.latex), func(name string) bool { return name == "" })
}

// extension returns the extension of the format of a file.
func (f *comparisonFiles) extension(name string) string {
	switch name {
	case f.csv:
		return ".csv"
	case f.latex:
		return ".tex"
	}
	return strings.ToLower(filepath.Ext(name))
}

// check returns an error for files that could not be written. tables are the extensions of the tables.
func (f *comparisonFiles) check(tables ...string) error {
	names := f.names()
	for i, name := range names {
		if !slices.Contains(tables, f.extension(name)) {
			if err := figure.Check(name); err != nil {
				return usage("%w; a table is %s", err, strings.Join(tables, " or "))
			}
		}
		if slices.Contains(names[:i], name) {
			return usage("%s is given twice: give each file once", name)
		}
		if err := checkWritable(name); err != nil {
			return err
		}
	}
	return nil
}

// write begins to write all files, each as a table of its extension if there is one, and else as a figure.
func (f *comparisonFiles) write(tables map[string]func(io.Writer) error, title string, all []figure.Series) *writings {
	out := &writings{}
	for _, name := range f.names() {
		write := tables[f.extension(name)]
		if write == nil {
			write = func(w io.Writer) error { return figure.Write(w, name, title, all) }
		}
		out.begin(name, func() error { return output.Save(name, write) })
	}
	return out
}

// latex writes the rows as a LaTeX table.
func (c *comparison) latex(w io.Writer) error {
	var rows [][]string
	for _, r := range c.Rows {
		line := []string{r.Method, r.Scheme, fmt.Sprint(r.Peers), "–", "–", "–", "–", "–", "–", "–", "–"}
		if r.Why == "" {
			number := report.LatexNumber
			copy(line[3:], []string{
				number(r.Seconds, "%.3f"), number(r.Fastest, "%.3f"), number(r.Slowest, "%.3f"),
				number(100*r.Efficiency, "%.0f %%"), number(r.Equivalent, "%.1f"), number(r.Residual, "%.2e"),
				fmt.Sprint(*r.Messages), fmt.Sprintf("%.1f", float64(*r.Bytes)/1e6),
			})
		}
		rows = append(rows, line)
	}
	about := fmt.Sprintf("%s, n = %v, tolerance %g, %s per peer, median of %d rounds", c.Problem, c.N, c.Tolerance,
		counted(c.Threads, "thread"), c.Rounds)
	return report.Latex(w, about, []string{
		"method", "scheme", "peers", "seconds", "fastest", "slowest", "efficiency", "sweeps", "residual", "messages", "MB",
	}, rows)
}
