package output

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// SeriesExtension is that of a time series: a ParaView collection of .vti files, one a
// time step, beside it.
const SeriesExtension = ".pvd"

// IsSeries tells whether path names a time series.
func IsSeries(path string) bool { return strings.ToLower(filepath.Ext(path)) == SeriesExtension }

// Series is a time series being written. Its methods are for one goroutine.
type Series struct {
	path  string
	width int // digits of a step's number
	steps []seriesStep
}

type seriesStep struct {
	time float64
	file string
}

// CreateSeries begins the series at path, of steps numbered 0 to last. It writes
// nothing yet.
func CreateSeries(path string, last int) (*Series, error) {
	if !IsSeries(path) {
		return nil, fmt.Errorf("output %s: a time series is a %s file", path, SeriesExtension)
	}
	if err := writable(path); err != nil {
		return nil, err
	}
	return &Series{path: path, width: len(fmt.Sprint(last))}, nil
}

// often is how many steps the collection is written anew after each of; from there on
// it is now and then.
const eachStep = 256

// Add writes step m at time t as a file of its own, and the collection anew: who looks
// at it meanwhile, or after a run that broke off, finds whole steps.
func (s *Series) Add(m int, t float64, u Solution) error {
	folder, name := filepath.Split(s.path)
	name = fmt.Sprintf("%s_%0*d.vti", strings.TrimSuffix(name, filepath.Ext(name)), s.width, m)
	if err := Write(filepath.Join(folder, name), u); err != nil {
		return err
	}
	s.steps = append(s.steps, seriesStep{t, name})
	if n := len(s.steps); n > eachStep && n%eachStep != 0 {
		return nil
	}
	return s.Close()
}

// Close writes the collection of all steps.
func (s *Series) Close() error { return Replace(s.path, s.collection) }

// Steps is how many have been added.
func (s *Series) Steps() int { return len(s.steps) }

func (s *Series) collection(w io.Writer) error {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")
	var lines strings.Builder
	for _, e := range s.steps {
		fmt.Fprintf(&lines, "    <DataSet timestep=\"%v\" file=\"%s\"/>\n", e.time, escape.Replace(e.file))
	}
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n  <Collection>\n%s  </Collection>\n</VTKFile>\n",
		lines.String())
	return err
}
