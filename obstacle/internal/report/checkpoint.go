package report

import (
	"fmt"
	"io"
	"os"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// Resumed describes the checkpoint from which a run continued another.
type Resumed struct {
	From    string   `json:"from"` // its manifest
	Step    int      `json:"step"`
	Sweeps  uint64   `json:"sweeps"`
	Skipped []string `json:"skipped,omitempty"` // why newer checkpoints were not used
}

// checkpoint writes where the run began and how it can be continued.
func (s *Solution) checkpoint(w io.Writer) {
	if r := s.Resumed; r != nil {
		fmt.Fprintf(w, "resumed\tfrom %s, %s\n", spelling.Visible(r.From), s.after(r.Step, r.Sweeps))
	}
	c := s.Checkpoint
	if c == nil {
		return
	}
	switch {
	case c.Written > 0:
		fmt.Fprintf(w, "checkpoint\t%s, %s\n", spelling.Visible(c.Directory), s.after(c.Step, c.Sweeps))
	case c.Failed == 0:
		fmt.Fprintf(w, "checkpoint\t%s: none was due\n", spelling.Visible(c.Directory))
	}
	if c.Failed > 0 {
		fmt.Fprintf(w, "checkpoint\tNOT WRITTEN %s: %s\n", times(c.Failed), spelling.Visible(c.Error))
	}
	if s.Resumable {
		fmt.Fprintf(w, "\tcontinue with: obstacle resume %s%s\n", spelling.File(c.Directory), s.elsewhere(c.Host))
	}
}

// elsewhere names a host that is not this one.
func (s *Solution) elsewhere(host string) string {
	if name, err := os.Hostname(); err != nil || host == "" || host == name {
		return ""
	}
	return ", on " + spelling.Visible(host)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// after describes the work before a checkpoint.
func (s *Solution) after(step int, sweeps uint64) string {
	if s.Evolution != nil {
		return fmt.Sprintf("after time step %d", step)
	}
	return fmt.Sprintf("after %d iterations", sweeps) // of several methods, perhaps
}
