// Package await lets tests wait for what other goroutines, processes or the kernel do. A
// test that waits gives no verdict by the clock: a slow machine only makes it take longer.
// What never happens is ended by go test -timeout, or by Limit where the test has to end
// other processes and to show their logs first.
package await

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Limit is after how long Until gives a wait up as a hang: far above what a slow machine
// needs, and below the default of go test -timeout.
const Limit = 5 * time.Minute

// TB is the part of testing.TB and of rapid.TB that waiting needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Context returns a context that ends with the test, after Limit at the latest: then the
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
			t.Errorf("still running after %v\n%s", Limit, Stacks())
		}
	})
	t.Cleanup(func() {
		cancel()
		<-reported
	})
	return ctx
}

// Until polls done until it reports true. If that has not happened within Limit, Until
// fails the test with the stacks of all goroutines.
func Until(t TB, done func() bool, format string, args ...any) {
	t.Helper()
	poll(t, done, Limit, format, args...)
}

// Pass lets time pass for processes that have clocks of their own: for at least d, however
// long that really takes.
func Pass(d time.Duration) { time.Sleep(d) }

// pauses between polls grow up to longest: a loaded machine is not loaded further.
const longest = 2 * time.Millisecond

func poll(t TB, done func() bool, limit time.Duration, format string, args ...any) {
	t.Helper()
	begin, pause := time.Now(), 50*time.Microsecond
	for !done() {
		if time.Since(begin) > limit {
			t.Fatalf("in vain for %v: "+format+"\n%s", append(append([]any{limit}, args...), Stacks())...)
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, longest)
	}
}

// Stacks returns the stacks of all goroutines, cut off after a megabyte.
func Stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}
