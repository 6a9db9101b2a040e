package output

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// SeriesExtension is the extension of a time series: a ParaView collection that refers to one file per time step in the
// same directory. The extension before it is the format of these files, .vti if there is none.
const SeriesExtension = ".pvd"

// pieces are the formats of the steps of a collection.
var pieces = []string{".vti", ".vtu", ".vtp"}

// IsSeries reports whether path names a time series.
func IsSeries(path string) bool { return strings.ToLower(filepath.Ext(path)) == SeriesExtension }

// IsSeriesOf reports whether path names a time series of the problem. An .xdmf file is one if the problem has time
// steps.
func IsSeriesOf(path string, p *problem.Problem) bool {
	return IsSeries(path) || isXDMF(path) && p.Steps() > 0
}

func isXDMF(path string) bool { return strings.ToLower(filepath.Ext(path)) == XDMFExtension }

// splitSeries returns the path of a series without its extensions, and the format of its steps.
func splitSeries(path string) (stem, piece string) {
	stem = strings.TrimSuffix(path, filepath.Ext(path))
	if isXDMF(path) {
		return stem, XDMFExtension
	}
	if piece = filepath.Ext(stem); slices.Contains(pieces, strings.ToLower(piece)) {
		return strings.TrimSuffix(stem, piece), strings.ToLower(piece)
	}
	return stem, pieces[0]
}

// Series is a time series being written. It must not be used by several goroutines at once.
type Series struct {
	path  string
	width int      // digits of step numbers
	steps []string // XML of each step
}

// CreateSeries returns a series at path for steps 0 to last. It does not write files.
func CreateSeries(path string, last int) (*Series, error) {
	if err := writable(path); err != nil {
		return nil, err
	}
	return &Series{path: path, width: len(fmt.Sprint(last))}, nil
}

// eachStep is the number of steps up to which the collection is rewritten after every step. Later it is
// rewritten after every eachStep steps.
const eachStep = 256

// Add writes the files of step m at time t and rewrites the collection, which contains complete steps at any time, also
// after an aborted run.
func (s *Series) Add(m int, t float64, u Solution) error {
	stem, piece := splitSeries(s.path)
	stem = fmt.Sprintf("%s_%0*d", stem, s.width, m)
	step, err := addStep(stem, piece, t, u)
	if err != nil {
		return err
	}
	s.steps = append(s.steps, step)
	if n := len(s.steps); n > eachStep && n%eachStep != 0 {
		return nil
	}
	return s.Close()
}

// addStep writes the files of a step and returns its XML.
func addStep(stem, piece string, t float64, u Solution) (string, error) {
	if piece != XDMFExtension {
		file := xmlText.Replace(filepath.Base(stem + piece))
		return fmt.Sprintf("    <DataSet timestep=\"%v\" file=\"%s\"/>\n", t, file), Write(stem+piece, u)
	}
	g, err := newGrid(u)
	if err != nil {
		return "", fmt.Errorf("output %s: %w", stem, err)
	}
	return xdmfGrid(stem, g, fmt.Sprintf("      <Time Value=\"%v\"/>\n", t)), writeArrays(stem, g)
}

// Close writes the collection of all steps.
func (s *Series) Close() error {
	return Replace(s.path, func(w io.Writer) error {
		if isXDMF(s.path) {
			return writeDescription(w, slices.Concat(
				[]string{"    <Grid Name=\"series\" GridType=\"Collection\" CollectionType=\"Temporal\">\n"}, s.steps,
				[]string{"    </Grid>\n"})...)
		}
		_, err := fmt.Fprintf(w, `<?xml version="1.0"?>
<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">
  <Collection>
%s  </Collection>
</VTKFile>
`, strings.Join(s.steps, ""))
		return err
	})
}
