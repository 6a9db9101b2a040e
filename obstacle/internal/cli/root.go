// Package cli implements the command line of obstacle: commands, flags, defaults and exit codes. Other packages do
// the work.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// app is one invocation of the program.
type app struct {
	catalog  *catalog.Set
	identify Identify
	in       io.Reader
	out      io.Writer
	err      io.Writer

	format    string
	logLevel  string
	logFormat string
	colour    string // --color
	above     *above // stderr; while progress is shown, the lines above it
	log       zerolog.Logger

	answered  func(s *report.Solution, u []float64) // gets the answer of solve; nil: nobody
	interrupt <-chan struct{}                       // closed at the first signal; see interrupts
	ends      []func()                              // to be called at the end of the run, last first
}

// Identify makes the identity of a run from the secret that its processes have in a file.
type Identify func(program, fingerprint string, secret []byte) (rendezvous.Identity, error)

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, c *catalog.Set, in io.Reader, out, errs io.Writer) int {
	return MainWith(ctx, rendezvous.NewIdentity, args, c, in, out, errs)
}

// MainWith is Main with another Identify. Tests of many processes use one that does not stretch the secret, which
// takes each process a third of a second of a processor.
func MainWith(ctx context.Context, by Identify, args []string, c *catalog.Set, in io.Reader, out, errs io.Writer) int {
	traceSignal.install()
	a := &app{catalog: c, identify: by, in: in, out: out, err: errs}
	err := a.run(ctx, args)
	if err != nil && err.Error() != "" {
		a.tell(fmt.Sprintf("%s %s\n", a.painter(errs)(red, "obstacle:"), oneLine(err)))
	}
	return exitCode(err)
}

// Call runs the program for a caller in the same process, which gets the answer of solve or resume, the report and the values, and
// the error instead of an exit code. Logs go to errs.
func Call(
	ctx context.Context, args []string, c *catalog.Set, errs io.Writer, answered func(s *report.Solution, u []float64),
) error {
	a := &app{
		catalog: c, identify: rendezvous.NewIdentity, in: strings.NewReader(""), out: io.Discard, err: errs, answered: answered,
	}
	err := a.run(ctx, args)
	if err != nil && err.Error() == "" {
		return nil // the answer says why it is not solved
	}
	return err
}

// run runs the command that the arguments name.
func (a *app) run(ctx context.Context, args []string) error {
	root := a.root()
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.complete(root) // cobra keeps completions of flags until the process ends
	}
	root.SetArgs(helpArgs(root, args))
	defer a.end()
	return root.ExecuteContext(ctx)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "obstacle",
		Short: "Solve obstacle problems with peers that exchange halos",
		Long: `obstacle solves large obstacle problems, such as a membrane over an obstacle, by
projected iterations on several peers, synchronously or asynchronously. Peers are
processes that exchange halos directly over P2PSAP.`,
		Example:       "  obstacle solve membrane --n 32 --peers 2 --scheme async",
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(checkNumbers(c.Flags()), checkGiven(c, args), a.start()); err != nil {
				return err
			}
			return a.checkFiles(c, args)
		},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("no command %q%s; obstacle --help lists the commands", args[0],
					spelling.Suggest(args[0], commandNames(c)))
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return a.first() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.format, "format", "text", "format of the output: text or json")
	f.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn, error or off; logs go to stderr")
	f.StringVar(&a.logFormat, "log-format", "text", "format of the logs: text or json")
	f.StringVar(&a.colour, "color", "auto", "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return flagMistake(c, err)
	})
	root.AddCommand(a.initCommand(), a.explainCommand(), a.solveCommand(), a.resumeCommand(), a.attachCommand(),
		a.compareCommand(), a.simulateCommand(), a.convergenceCommand(),
		a.checkCommand(),
		a.problemsCommand(), a.clustersCommand(), a.calibrateCommand(), a.stackCommand(), a.peerCommand(),
		a.secretCommand(), a.doctorCommand(), a.versionCommand(), a.manCommand(), a.traceCommand())
	return root
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// atEnd adds a function to call when the command ends.
func (a *app) atEnd(f func()) { a.ends = append(a.ends, f) }

// end calls the functions of atEnd.
func (a *app) end() {
	for _, f := range slices.Backward(a.ends) {
		f()
	}
	a.ends = nil
}

// start applies the flags that every command has.
func (a *app) start() error {
	for _, pair := range [][2]string{{"format", a.format}, {"log-format", a.logFormat}, {"log-level", a.logLevel},
		{"color", a.colour}} {
		if err := checkWord(pair[0], pair[1]); err != nil {
			return err
		}
	}
	level, err := zerolog.ParseLevel(strings.Replace(a.logLevel, "off", "disabled", 1))
	if err != nil {
		return failed(err)
	}
	a.above = &above{w: a.err, colours: a.colours(a.err)}
	var w io.Writer = a.above
	if a.logFormat == "text" {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !a.colours(a.err), TimeFormat: "15:04:05.000",
			FormatPrepare: func(fields map[string]any) error { // the console prints messages as they are
				if text, is := fields[zerolog.MessageFieldName].(string); is {
					fields[zerolog.MessageFieldName] = spelling.Visible(text)
				}
				return nil
			}}
	}
	a.log = zerolog.New(w).Level(level).Hook(timed{})
	return nil
}

// timed writes the time into lines of the log, in nanoseconds: zerolog's own way is a variable of the whole process, which the
// caller of Call may use, too.
type timed struct{}

func (timed) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().Format(time.RFC3339Nano))
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, not %q", c.CommandPath(), args)
	}
	return nil
}

// oneArgument requires one argument, which errors call what.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			hint := ""
			if what == "problem" && len(args) == 0 {
				hint = "; obstacle problems lists those built in, and obstacle init my.yaml writes a file"
			}
			return usage("%s takes one %s, not %d arguments%s; see %s --help", c.CommandPath(), what, len(args), hint,
				c.CommandPath())
		}
		return nil
	}
}

// print writes v as JSON, or the output of text, to stdout in one write.
func (a *app) print(v any, text func(w io.Writer)) error {
	var all bytes.Buffer
	if a.format == "json" {
		e := json.NewEncoder(&all)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return failed(err)
		}
	} else {
		text(&all)
	}
	if _, err := a.out.Write(visible(all.Bytes(), a.colours(a.out))); err != nil {
		return failed(fmt.Errorf("cannot print the answer: %w", err))
	}
	return nil
}

// tell writes text to stderr, as say does.
func (a *app) tell(text string) {
	if a.above == nil { // the flags are wrong
		a.above = &above{w: a.err, colours: a.colours(a.err)}
	}
	_, _ = a.above.Write([]byte(text))
}

// oneLine returns the text of an error, or of several joined ones, in one line.
func oneLine(err error) string {
	if all, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // the outermost one
		if text := err.Error(); text == errors.Join(all.Unwrap()...).Error() {
			var out []string
			for _, e := range all.Unwrap() {
				out = append(out, oneLine(e))
			}
			return strings.Join(out, "; ")
		}
	}
	return spelling.Visible(err.Error())
}

func terminal(w io.Writer) bool {
	f, is := w.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
