package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// The answer is printed although a file hangs, which holds back no other file. The program waits for it as long as it
// should, or until the user wants the end, and names it.
func TestAFileThatHangsHoldsNothingBack(t *testing.T) {
	const before, whole = 6 * time.Second, 11 * time.Second
	for name, c := range map[string]struct {
		after time.Duration // until the file is written
		stop  time.Duration // until the user asks for the end; 0: before the writing
		err   string
	}{
		"for ever":            {time.Hour, 2 * time.Hour, "1 of 3 files were not written: output slow: it has not answered for 11s (--peer-timeout)"},
		"for a while":         {9 * time.Second, time.Hour, ""},
		"interrupted":         {time.Hour, 8 * time.Second, "1 of 3 files were not written: output slow: the wait for its storage was interrupted"},
		"interrupted first":   {time.Hour, 2 * time.Second, "1 of 3 files were not written: output slow: the wait for its storage was interrupted"},
		"stopped run":         {7 * time.Second, 0, ""},
		"for a little":        {3 * time.Second, time.Hour, ""},
		"stopped run, little": {3 * time.Second, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			a := &app{above: &above{w: &said}, log: zerolog.Nop().Level(zerolog.WarnLevel)}
			ctx, cancel := context.WithCancel(t.Context())
			if c.stop == 0 {
				cancel()
			} else {
				time.AfterFunc(c.stop, cancel)
			}
			w := &writings{}
			w.wait(10*time.Second, slowStorage)
			w.begin("slow", func() error { time.Sleep(c.after); return nil })
			w.begin("quick", func() error { return nil })
			w.begin("bad", func() error { return nil })
			begin := time.Now()
			late := c.after > before
			if c.stop == 0 {
				c.stop = time.Hour
			}
			require.Equal(t, []report.Output{{File: "slow", Pending: late}, {File: "quick"}, {File: "bad"}}, w.prompt(ctx), name)
			require.Equal(t, min(c.after, before, c.stop), time.Since(begin), name)
			err := a.finish(ctx, w)
			if c.err == "" {
				require.NoError(t, err, name)
				require.Equal(t, c.after, time.Since(begin), name)
				require.Equal(t, late, said.Len() > 0, name)
			} else {
				require.EqualError(t, err, c.err, name)
				require.Equal(t, min(c.stop, whole), time.Since(begin), name)
			}
			time.Sleep(2 * time.Hour) // no goroutine is left
		})
	}
	w := &writings{}
	w.wait(time.Hour, 0)
	w.begin("bad", func() error { return errors.New("no room") })
	require.Equal(t, "no room", w.prompt(t.Context())[0].Error)
	require.ErrorContains(t, (&app{}).finish(t.Context(), w), "1 of 1 files were not written: no room")
}

// A step of a time series that hangs holds the run up once, for the limit, and ends the series.
func TestAStepThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hangs := &timeSeries{name: "s.pvd"}, make(chan struct{})
		var calls atomic.Int32
		begin := time.Now()
		for range 3 {
			s.write(patience(10*time.Second, slowStorage), func() error { calls.Add(1); <-hangs; return nil })
		}
		require.Equal(t, 11*time.Second, time.Since(begin))
		require.EqualValues(t, 1, calls.Load())
		require.EqualError(t, s.close(), "output s.pvd: it has not answered for 11s (--peer-timeout)")
		close(hangs)
		synctest.Wait()
	})
}

// Names that stand for an open file are written in place.
func TestDevices(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("before "), 0o600))
	require.False(t, output.IsDevice(name))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	link := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Stat(link); err != nil {
		t.Skip("no /proc")
	}
	require.True(t, output.IsDevice(link))
	require.NoError(t, checkWritable(link))
	require.NoError(t, output.Save(link, func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before after", string(text))
}
