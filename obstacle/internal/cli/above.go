package cli

import (
	"io"
	"os"
	"sync"

	"github.com/p2pdc/p2pdc/internal/progress"
)

// above is stderr for lines of logs. While bars are shown, it writes above them, so that they do not tear.
type above struct {
	w       io.Writer
	colours bool

	mu   sync.Mutex
	bars *progress.Bars
}

func (a *above) Write(lines []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var w io.Writer = a.bars
	if a.bars == nil {
		w = a.w
	}
	if _, err := w.Write(visible(lines, a.colours)); err != nil {
		return 0, err
	}
	return len(lines), nil
}

func (a *above) set(b *progress.Bars) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bars = b
}

// bars returns bars on stderr: lines, unless that is a terminal that can move its cursor.
func (a *app) bars() *progress.Bars {
	if !terminal(a.err) || os.Getenv("TERM") == "dumb" {
		return progress.NewLines(a.say)
	}
	b := progress.NewBars(a.err)
	a.above.set(b)
	return b
}

// closeBars waits until the bars have gone.
func (a *app) closeBars(b *progress.Bars) {
	a.above.set(nil)
	b.Close()
}

// childErrors returns the stderr of peers that solve starts: that of this process, or on a terminal the lines above
// the bars.
func (a *app) childErrors() io.Writer {
	if terminal(a.err) {
		return a.above
	}
	return a.err
}

// childColour returns --color of those peers, whose stderr may be a pipe to this process.
func (a *app) childColour() string {
	if a.colours(a.err) {
		return "always"
	}
	return "never"
}
