package output

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// SeriesExtension is the extension of a time series: a ParaView collection that refers to one .vti file per
// time step in the same directory.
const SeriesExtension = ".pvd"

// IsSeries reports whether path names a time series.
func IsSeries(path string) bool { return strings.ToLower(filepath.Ext(path)) == SeriesExtension }

// Series is a time series being written. It must not be used by several goroutines at once.
type Series struct {
	path  string
	width int // digits of step numbers
	steps []seriesStep
}

type seriesStep struct {
	time float64
	file string
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

// Add writes step m at time t to a .vti file and rewrites the collection, which contains complete steps at
// any time, also after an aborted run.
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

func (s *Series) collection(w io.Writer) error {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")
	var lines strings.Builder
	for _, e := range s.steps {
		fmt.Fprintf(&lines, "    <DataSet timestep=\"%v\" file=\"%s\"/>\n", e.time, escape.Replace(e.file))
	}
	_, err := fmt.Fprintf(w, `<?xml version="1.0"?>
<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">
  <Collection>
%s  </Collection>
</VTKFile>
`, lines.String())
	return err
}
