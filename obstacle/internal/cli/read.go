package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/spelling"
)

// readAll reads a file that the user names, a pipe, or standard input (-), of at most limit bytes. what is the flag.
func (a *app) readAll(ctx context.Context, what, name string, limit int64) ([]byte, error) {
	return a.readHeaded(ctx, what, name, limit, 0, func([]byte) error { return nil })
}

// readHeaded is readAll for what starts with a header of n bytes, which check accepts.
func (a *app) readHeaded(
	ctx context.Context, what, name string, limit int64, n int, check func(header []byte) error,
) ([]byte, error) {
	return a.read(ctx, what, name, limit, func(r io.Reader) ([]byte, error) { return input.Headed(r, limit, n, check) })
}

// readLine is readAll for the first line.
func (a *app) readLine(ctx context.Context, what, name string, limit int) ([]byte, error) {
	return a.read(ctx, what, name, math.MaxInt64, func(r io.Reader) ([]byte, error) { return input.Line(r, limit) })
}

// quietTime is how long a read lasts before a line says what the program waits for.
const quietTime = time.Second

// read calls take with what the user names. A pipe may have no writer, and standard input may be a terminal: a signal
// ends the wait with ExitStopped.
func (a *app) read(
	ctx context.Context, what, name string, limit int64, take func(io.Reader) ([]byte, error),
) ([]byte, error) {
	ctx, stop := stoppable(ctx)
	defer stop()
	waiting := what + " " + name
	if name == "-" {
		waiting = "standard input (" + what + " -)"
	}
	quiet := quietTime
	if in, is := a.in.(*os.File); is && name == "-" && terminal(in) {
		quiet = 0
	}
	defer a.sayAfter(quiet, "waiting for "+waiting+"; Ctrl-C ends the program")()
	all, err := input.Within(ctx, func() ([]byte, error) {
		if name == "-" {
			return take(a.in)
		}
		f, err := input.OpenStream(name, limit)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return take(f)
	})
	if ctx.Err() != nil && err != nil {
		return nil, &exitError{ExitStopped, fmt.Errorf("interrupted while it waited for %s; nothing was run", waiting)}
	}
	return all, err
}

// sayAfter says a line after some time. stop prevents that, or waits until it is written, so that it never follows the error of
// the command.
func (a *app) sayAfter(quiet time.Duration, line string) (stop func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(quiet, func() {
		defer close(said)
		a.say(line)
	})
	return func() {
		if !timer.Stop() {
			<-said
		}
	}
}

// say writes a line to stderr that is no error: as it is, or as an object with --log-format json. --log-level error and
// off silence it.
func (a *app) say(line string) {
	switch {
	case a.log.GetLevel() > zerolog.WarnLevel:
	case a.logFormat == "json":
		a.log.Log().Msg(line)
	default:
		_, _ = fmt.Fprintln(a.above, spelling.Visible(line))
	}
}
