package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// pseudo is a pseudo-terminal: the program writes to file, and the test reads what arrived.
type pseudo struct {
	t          *testing.T
	file, from *os.File
	seen       string
}

func openTerminal(t *testing.T) *pseudo {
	t.Helper()
	from, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { from.Close() })
	n, err := unix.IoctlGetInt(int(from.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(from.Fd()), unix.TIOCSPTLCK, 0))
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(from.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 132}))
	return &pseudo{t: t, file: file, from: from}
}

// until reads until the text was seen after what the last call has seen, and returns all that it read.
func (p *pseudo) until(text string) string {
	p.t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(p.seen, text) {
		n, err := p.from.Read(buf)
		require.NoError(p.t, err, p.seen)
		p.seen += string(buf[:n])
	}
	end := strings.Index(p.seen, text) + len(text)
	out := p.seen[:end]
	p.seen = p.seen[end:]
	return out
}

// On a terminal the prefix of an error has a colour, unless NO_COLOR, TERM or --color say otherwise.
func TestColoursOnATerminal(t *testing.T) {
	for _, c := range []struct {
		noColour, term, flag string
		want                 bool
	}{
		{"", "xterm", "auto", true}, {"1", "xterm", "auto", false}, {"", "dumb", "auto", false},
		{"", "xterm", "never", false}, {"1", "dumb", "always", true},
	} {
		t.Setenv("NO_COLOR", c.noColour)
		t.Setenv("TERM", c.term)
		p := openTerminal(t)
		code := Main(context.Background(), []string{"slove", "--color", c.flag}, catalog.New(), strings.NewReader(""),
			p.file, p.file)
		require.Equal(t, ExitUsage, code)
		require.Equal(t, c.want, strings.Contains(p.until("lists the commands"), "\x1b[31mobstacle:\x1b[0m"), c)
	}
}

// On a terminal a line says at once that the program waits for the secret, and the end of the context ends the wait.
func TestWaitOnATerminal(t *testing.T) {
	p := openTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() {
		code <- Main(ctx, []string{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "-"}, catalog.New(), p.file,
			p.file, p.file)
	}()
	p.until("waiting for standard input (--secret-file -); Ctrl-C ends the program\r\n")
	cancel()
	require.Equal(t, ExitStopped, <-code)
	p.until("interrupted while it waited for standard input (--secret-file -); nothing was run")
}

// A terminal shows the residual and the time left of a run, and a line of the log stands on a line of its own.
func TestProgressOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p := openTerminal(t)
	a := &app{catalog: catalog.New(), err: p.file, format: "json", logFormat: "text", logLevel: "warn", colour: "never"}
	require.NoError(t, a.start())
	bars := a.bars()
	require.NotNil(t, bars)
	bar := bars.Add("membrane", 1e-6)
	bar.Update(time.Second, 10, 1)
	bar.Update(1500*time.Millisecond, 15, 0.3)
	bar.Update(2*time.Second, 20, 0.1)
	all := p.until("residual 1.00e-01 of 1e-06  sweep 20  2.0 s, left 1 to 14 s\r\n")
	a.log.Warn().Msg("a peer is late")
	for i := range 3 { // the bar is drawn again and again
		bar.Update(time.Duration(3+i)*time.Second, uint64(30+i), 0.01)
		all += p.until(fmt.Sprintf("sweep %d", 30+i))
		all += p.until("\r\n")
	}
	lines := screen(all)
	require.Len(t, lines, 2, "%q", all)
	require.Contains(t, lines[0], "a peer is late")
	require.NotContains(t, lines[0], "residual")
	require.Contains(t, lines[1], "residual 1.00e-02 of 1e-06  sweep 32")
	bar.Remove()
	a.closeBars(bars)
	a.log.Warn().Msg("after the run")
	p.until("after the run")
	t.Setenv("TERM", "dumb")
	dumb := a.bars()
	defer dumb.Add("membrane", 1e-6).Remove()
	p.until("membrane: nothing is relaxed yet after 1.0 s")
}

// screen returns the lines that a terminal shows after a text with the sequences that move up and erase below.
func screen(text string) []string {
	lines, row := []string{""}, 0
	for text != "" {
		var up int
		rest, erases := strings.CutPrefix(text, "\x1b[J")
		moves := false
		if !erases {
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &up); err == nil {
				_, rest, moves = strings.Cut(text, "A")
			}
		}
		switch {
		case erases:
			lines = lines[:row+1]
			lines[row] = ""
		case moves:
			row = max(row-up, 0)
		case text[0] == '\n':
			if row++; row == len(lines) {
				lines = append(lines, "")
			}
			rest = text[1:]
		case text[0] == '\r':
			rest = text[1:]
		default:
			lines[row] += text[:1]
			rest = text[1:]
		}
		text = rest
	}
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" })
}

// Output that is no terminal gets no bar and no escapes, whatever the format, and no lines with --log-level error.
func TestNoProgressElsewhere(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		code, _, errs := call("solve", "membrane", "--n", "8", "--in-process", "--format", format, "--log-level", "error")
		require.Zero(t, code)
		require.Empty(t, errs)
	}
}
