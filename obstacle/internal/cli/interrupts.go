package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameRequest is the time after the first signal in which the same signal counts as that one. timeout(1) signals its child and
// then the whole group, and a shell that ends and the terminal both send SIGHUP.
const sameRequest = 200 * time.Millisecond

// demand is what a signal asks for.
type demand int

const (
	demandNone  demand = iota // it repeats the first one
	demandEnd                 // the first signal: an early end
	demandAbort               // the second one: the end at once
)

// demands decides what signals ask for.
type demands struct {
	first os.Signal // nil: none has arrived
	at    time.Time // when it arrived
}

// arrive returns what a signal asks for that arrives at a time.
func (d *demands) arrive(s os.Signal, now time.Time) demand {
	switch {
	case d.first == nil:
		d.first, d.at = s, now
		return demandEnd
	case s == d.first && now.Sub(d.at) < sameRequest:
		return demandNone
	}
	return demandAbort
}

// interrupts closes a.interrupt at the first signal, which requests an early end, and cancels the context at the
// second.
func (a *app) interrupts(ctx context.Context) (context.Context, func()) {
	return a.interruptsOr(ctx, nil)
}

// interruptsOr is interrupts for a process that closes leave instead if the first signal is SIGTERM, unless leave is nil.
func (a *app) interruptsOr(ctx context.Context, leave chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	polite, signals := make(chan struct{}), make(chan os.Signal, 2)
	a.interrupt = polite
	signal.Notify(signals, stopSignals()...)
	ignoreWriteSignals()
	go func() {
		var d demands
		for {
			select {
			case s := <-signals:
				switch d.arrive(s, time.Now()) {
				case demandEnd:
					if leave != nil && s == syscall.SIGTERM {
						close(leave)
					} else {
						close(polite)
					}
				case demandAbort:
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// stoppable returns a context that ends at the first signal.
func stoppable(ctx context.Context) (context.Context, func()) {
	ignoreWriteSignals()
	return signal.NotifyContext(ctx, stopSignals()...)
}

// stopSignals returns the signals that request an early end. SIGHUP is one of them unless it was ignored from the
// start, as by nohup.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// ignoreWriteSignals makes a failed write, to a closed pipe or beyond the limit on the size of files, return an error
// instead of ending the program.
func ignoreWriteSignals() { signal.Ignore(writeSignals()...) }
