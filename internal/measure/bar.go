package measure

import (
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/term"

	"github.com/p2pdc/p2pdc/internal/progress"
)

// barInterval is the time between two drawings of the bar. Each takes some ten microseconds of a processor on which
// something may be measured.
const barInterval = time.Second

// bar is what a terminal shows of a program that measures. The standard output is written above it if it is a terminal
// too.
type bar struct {
	all   *progress.Bars
	parts *progress.PartsBar
}

// Show draws the part and the round in progress, and the time left, on a terminal until end is called. It does nothing
// if the standard error is no terminal. expected is the time that each part takes, 0 where it is unknown. The caller
// calls begin for every part.
func (r *Run) Show(expected []time.Duration) (begin func(part int, name string), end func()) {
	if len(expected) == 0 || !terminal(os.Stderr) || os.Getenv("TERM") == "dumb" {
		return func(int, string) {}, func() {}
	}
	r.bar = &bar{all: progress.NewSlowBars(os.Stderr, barInterval)}
	r.bar.parts = r.bar.all.Parts(expected)
	return r.bar.parts.Begin, func() {
		r.bar.parts.Remove()
		r.bar.all.Close()
		r.bar = nil
	}
}

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor is small

// Log returns the standard error, or what writes whole lines there above the bar.
func (r *Run) Log() io.Writer {
	if r.bar != nil {
		return r.bar.all
	}
	return os.Stderr
}

// Out returns the standard output, or what writes whole lines there above the bar of the same terminal.
func (r *Run) Out() io.Writer {
	if r.bar != nil && terminal(os.Stdout) {
		return r.bar.all
	}
	return os.Stdout
}

// Repeat yields the rounds 0 to n-1 of a comparison, and shows which one is in progress.
func (r *Run) Repeat(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := range n {
			if r.bar != nil {
				r.bar.parts.Round(round+1, n)
			}
			if !yield(round) {
				return
			}
		}
	}
}

// expected returns the time that a part took on this kind of machine when it was recorded, for this number of rounds; 0
// if there is no such record.
func expected(directory, part string, rounds int) time.Duration {
	here := Record{Part: part, Processor: cpuid.CPU.BrandName, Cores: runtime.NumCPU()}
	data, err := os.ReadFile(filepath.Join(directory, here.file()))
	var old Record
	if err != nil || json.Unmarshal(data, &old) != nil || !(old.Seconds > 0) || old.Rounds < 1 {
		return 0
	}
	return time.Duration(min(old.Seconds*float64(rounds)/float64(old.Rounds), 1e8) * float64(time.Second))
}
