package measure

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onTerminal makes the standard error and output a pseudo-terminal during f, and returns what arrived there.
func onTerminal(t *testing.T, f func()) string {
	t.Helper()
	from, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	defer from.Close()
	n, err := unix.IoctlGetInt(int(from.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(from.Fd()), unix.TIOCSPTLCK, 0))
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(from.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 132}))
	out, errs := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = out, errs }()
	os.Stdout, os.Stderr = file, file
	got := make(chan string)
	go func() {
		all, buf := "", make([]byte, 4096)
		for !strings.Contains(all, "END") {
			n, err := from.Read(buf)
			if err != nil {
				break
			}
			all += string(buf[:n])
		}
		got <- all
	}()
	f()
	fmt.Fprint(file, "END")
	defer file.Close()
	return <-got
}

// A terminal shows the part and the round in progress, and the lines of results above them. The bar is gone at the end.
func TestBarOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	p := Program{Name: "bench", Rounds: 2, dry: true, Parts: []Part{{"sweep", "sweeps", func(_ context.Context, r *Run) error {
		var rounds []float64
		for i := range r.Repeat(r.Rounds) {
			rounds = append(rounds, float64(i))
		}
		r.Add(Over("a sweep", "s", rounds))
		return nil
	}}}}
	all := onTerminal(t, func() { require.NoError(t, p.Measure(t.Context())) })
	require.Contains(t, all, "part 1 of 1: sweep  round 2 of 2")
	require.Contains(t, all, "a sweep: 0.5 s")
	require.Contains(t, all, "| a sweep |", "the table of the standard output is above the bar")
	require.Regexp(t, `\x1b\[J[^\]]*END$`, all, "the bar is erased")
	require.NotContains(t, onTerminal(t, func() {
		t.Setenv("TERM", "dumb")
		require.NoError(t, p.Measure(t.Context()))
	}), "part 1 of 1")
}

// The time that a part took is expected of the next one on the same kind of machine, by the number of rounds.
func TestExpectedTime(t *testing.T) {
	dir := t.TempDir()
	require.Zero(t, expected(dir, "sweep", 9))
	r := newRecord(t.Context(), root, "sweep", 3)
	_, err := r.write(dir)
	require.NoError(t, err)
	require.Zero(t, expected(dir, "sweep", 9), "an older record has no time")
	r.Seconds = 20
	_, err = r.write(dir)
	require.NoError(t, err)
	require.Equal(t, time.Minute, expected(dir, "sweep", 9))
	require.Zero(t, expected(dir, "kernels", 9))
}
