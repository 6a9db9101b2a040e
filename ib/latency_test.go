package ib

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

// Frames pass in both directions between two blocking receivers without any timer: the time of the
// bubble stands still.
func TestLatencyDependsOnNoTimer(t *testing.T) {
	for mode, c := range transferModes() {
		for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			synctest.Test(t, func(t *testing.T) { testLatency(t, mode, c, m) })
		}
	}
}

func testLatency(t *testing.T, mode string, c Config, m microproto.Mode) {
	begin := time.Now()
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(c)
	a.progressArmed.Store(true)
	b.progressArmed.Store(true)
	const turns = 500
	done := make(chan error, 2)
	play := func(l *Link, to microproto.LinkAddr, first bool) {
		batch := make([]microproto.Frame, 8)
		for k := range uint32(turns) {
			send := func() error {
				_, err := l.Send([]microproto.Frame{message(l, to, m, uint64(m)-1, k+1, 700, false)})
				return err
			}
			if first {
				if err := send(); err != nil {
					done <- err
					return
				}
			}
			n := 0
			for n == 0 {
				var err error
				if n, err = l.Recv(batch); err != nil {
					done <- err
					return
				}
			}
			for i := range batch[:n] {
				batch[i].Release()
			}
			if !first {
				if err := send(); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}
	go play(a, toB, true)
	go play(b, toA, false)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Zero(t, a.Stats().ProgressTicks+b.Stats().ProgressTicks, "%s, %v", mode, m)
	require.Zero(t, time.Since(begin), "%s, %v", mode, m)
}
