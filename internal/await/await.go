// Package await lets tests wait for events of other goroutines, processes or the kernel. A test that waits
// does not fail because the machine is slow. If an event never happens, Limit ends the test, early enough
// for it to end other processes and to print their logs before go test -timeout.
package await

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Limit is the time after which a wait counts as a hang. It is far above the need of a slow machine and
// below the default of go test -timeout.
const Limit = 5 * time.Minute

// TB is the common part of testing.TB and rapid.TB that Until needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Context returns a context that is cancelled at the end of the test. After Limit the context ends and the
// test fails with the stacks of all goroutines.
func Context(t interface {
	Errorf(format string, args ...any)
	Cleanup(func())
},
) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	reported := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(reported)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("still running after %v\n%s", Limit, stacks())
		}
	})
	t.Cleanup(func() {
		cancel()
		<-reported
	})
	return ctx
}

// Until polls done until it returns true. After Limit it fails the test with the stacks of all goroutines.
func Until(t TB, done func() bool, format string, args ...any) {
	t.Helper()
	poll(t, done, Limit, format, args...)
}

// Pass sleeps for at least d, for tests of processes that run on the real clock.
func Pass(d time.Duration) { time.Sleep(d) }

// maxPause bounds the increasing pauses between polls, which limit the load of the machine.
const maxPause = 2 * time.Millisecond

func poll(t TB, done func() bool, limit time.Duration, format string, args ...any) {
	t.Helper()
	begin, pause := time.Now(), 50*time.Microsecond
	for !done() {
		if time.Since(begin) > limit {
			t.Fatalf("waited %v for "+format+"\n%s", append(append([]any{limit}, args...), stacks())...)
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
}

// stacks returns the stacks of all goroutines, truncated after a megabyte.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}
