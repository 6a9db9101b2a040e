// Package measure runs the parts of a program that measures, keeps what they measured as records,
// and makes the tables of docs/performance.md, docs/simulation.md and the pages beside the records from them. bench and
// experiments are such programs.
package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Part is one group of measurements.
type Part struct {
	Name, About string
	Measure     func(ctx context.Context, r *Run) error
}

// ErrUnavailable is wrapped by the error of a part or peer that this machine lacks something for.
var ErrUnavailable = errors.New("not available here")

// Run is one run of a part.
type Run struct {
	Root   string // directory of the module
	Temp   string // directory for what is built; removed at the end
	Rounds int    // of each interleaved comparison
	Dry    bool   // no record, table or figure is written

	// Results are those added so far.
	Results []Result

	bar *bar // nil: none is shown
}

// Add adds results to the record and prints them to the standard error: some parts take minutes.
func (r *Run) Add(results ...Result) {
	r.Results = append(r.Results, results...)
	for _, m := range results {
		line := fmt.Sprintf("  %s: %s %s", m.Name, number(m.Value), m.Unit)
		for _, p := range m.Peers {
			line += fmt.Sprintf("; %s %s, ratio %s", p.Name, number(p.Value), number(p.Ratio))
		}
		fmt.Fprintln(r.Log(), line)
	}
}

// Skip adds a line without a figure: what was not measured, and why.
func (r *Run) Skip(name string, why error) {
	r.Add(Result{Name: name, Note: Reason(why)})
}

// Reason returns the note of a result that was not measured.
func Reason(why error) string {
	return "not measured: " + strings.Join(strings.Fields(why.Error()), " ")
}

// Program is a program that measures.
type Program struct {
	Name  string // of its directory, whose folder results has its records
	Parts []Part

	Rounds int // value of -rounds

	only      string
	list, dry bool
}

// Main runs a program until it ends or is interrupted. An error is printed and ends the process.
func Main(name string, run func(ctx context.Context) error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Flags declares the flags -only, -list, -rounds and -dry.
func (p *Program) Flags() {
	flag.StringVar(&p.only, "only", "", "comma-separated parts: "+strings.Join(p.names(), ","))
	flag.BoolVar(&p.list, "list", false, "list the parts")
	flag.IntVar(&p.Rounds, "rounds", 9, "rounds of each interleaved comparison, at least 1")
	flag.BoolVar(&p.dry, "dry", false, "record nothing")
}

func (p *Program) names() []string {
	var out []string
	for _, part := range p.Parts {
		out = append(out, part.Name)
	}
	return out
}

// Parse parses and checks the command line.
func (p *Program) Parse() error {
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	if p.Rounds < 1 {
		return fmt.Errorf("-rounds %d: at least 1", p.Rounds)
	}
	_, err := p.selected()
	return err
}

// Wants reports whether -only names a part, or is empty.
func (p *Program) Wants(part string) bool {
	return p.only == "" || slices.Contains(strings.Split(p.only, ","), part)
}

// selected returns the parts that -only names, or all of them.
func (p *Program) selected() ([]Part, error) {
	for _, w := range strings.FieldsFunc(p.only, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(p.names(), w) {
			return nil, fmt.Errorf("-only %s: there are %s", w, strings.Join(p.names(), ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Parts), func(part Part) bool { return !p.Wants(part.Name) }), nil
}

// Measure runs the selected parts, prints a table of each and records it, and then makes
// docs/performance.md again. A part that fails, or lacks something here, does not stop the others
// and leaves its older record in place.
func (p *Program) Measure(ctx context.Context) error {
	parts, err := p.selected()
	if err != nil {
		return err
	}
	if p.list {
		for _, part := range parts {
			fmt.Printf("%-12s %s\n", part.Name, part.About)
		}
		return nil
	}
	r, clean, err := NewRun(ctx, p.Rounds)
	if err != nil {
		return err
	}
	defer clean()
	r.Dry = p.dry
	var times []time.Duration
	for _, part := range parts {
		times = append(times, expected(p.results(r.Root), part.Name, p.Rounds))
	}
	begin, end := r.Show(times)
	defer end()
	var failed []error
	for i, part := range parts {
		begin(i, part.Name)
		err := p.part(ctx, r, part)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnavailable):
			fmt.Fprintf(r.Log(), "%s: skipped: %v\n", part.Name, err)
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", part.Name, err))
		}
	}
	if !p.dry {
		failed = append(failed, Report(r.Root))
	}
	return errors.Join(failed...)
}

// part runs a part and records it.
func (p *Program) part(ctx context.Context, r *Run, part Part) error {
	fmt.Fprintf(r.Log(), "%s: %s\n", part.Name, part.About)
	began := time.Now()
	record := newRecord(ctx, r.Root, part.Name, r.Rounds)
	r.Results = nil
	var err error
	if record.Sources, err = (&sources{root: r.Root}).of(part.Name); err != nil {
		return err
	}
	if err := part.Measure(ctx, r); err != nil {
		return err
	}
	record.Results, record.LoadAfter, record.Seconds = r.Results, load(), math.Round(time.Since(began).Seconds())
	fmt.Fprintln(r.Out(), table([]*Record{record}))
	if r.Dry {
		return nil
	}
	path, err := record.write(p.results(r.Root))
	if err == nil {
		fmt.Fprintf(r.Log(), "recorded: %s\n", path)
	}
	return err
}

// results returns the directory of the records.
func (p *Program) results(root string) string { return filepath.Join(root, p.Name, "results") }

// NewRun returns a run in the module of the working directory; clean removes its files.
func NewRun(ctx context.Context, rounds int) (r *Run, clean func(), err error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return nil, nil, err
	}
	temp, err := os.MkdirTemp("", "p2pdc-measure-")
	if err != nil {
		return nil, nil, err
	}
	return &Run{Root: root, Temp: temp, Rounds: rounds}, func() { _ = os.RemoveAll(temp) }, nil
}

// ModuleRoot returns the directory of the go.mod that applies to the working directory.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("the working directory is outside the module")
	}
	return filepath.Dir(mod), nil
}

// Command runs a program in the module's root and returns its standard output. An error has the
// last lines of the standard error.
func (r *Run) Command(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.Root, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		last := strings.Join(lines[max(0, len(lines)-3):], "; ")
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, last)
	}
	return out, nil
}
