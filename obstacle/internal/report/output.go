package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// Output is a requested file.
type Output struct {
	File  string `json:"file"`
	Host  string `json:"host,omitempty"`  // that has the file, if the process that started the run was lost; File is absolute
	Error string `json:"error,omitempty"` // why it is missing or incomplete; "" if it was written

	// Pending states that the file was still being written when the answer was printed. The exit code is that of the end.
	Pending bool `json:"pending,omitempty"`
}

// line writes whether the file was written, with a separator after the first word.
func (o *Output) line(w io.Writer, separator string) {
	if o.Error != "" {
		fmt.Fprintf(w, "NOT WRITTEN%s%s\n", separator, spelling.Visible(o.Error))
		return
	}
	if o.Pending {
		fmt.Fprintf(w, "not yet written%s%s\n", separator, spelling.Visible(o.File))
		return
	}
	on := ""
	if o.Host != "" {
		on = " on " + spelling.Visible(o.Host)
	}
	fmt.Fprintf(w, "written%s%s%s\n", separator, spelling.Visible(o.File), on)
}

// Lines writes a line for each output.
func Lines(w io.Writer, all []Output) {
	for i := range all {
		all[i].line(w, " ")
	}
}
