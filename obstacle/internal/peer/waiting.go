package peer

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrInterrupted is wrapped by errors of Run of a peer that was asked to end before it had a part of a run.
var ErrInterrupted = errors.New("interrupted")

// quietTime is how long a wait lasts before Options.Waiting is called.
const quietTime = time.Second

// waiting is the time of a process until it has a part of a run.
type waiting struct {
	say   func(what string) // may be nil
	begun chan struct{}     // closed when the process has a part

	mu   sync.Mutex
	what string
	said map[string]bool
	next *time.Timer // calls tell; nil: not pending
}

func newWaiting(say func(what string)) *waiting {
	return &waiting{say: say, begun: make(chan struct{}), said: map[string]bool{}}
}

// set sets what the process waits for.
func (w *waiting) set(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what = what
	if w.say != nil && w.next == nil && !w.said[what] && !closed(w.begun) {
		w.next = time.AfterFunc(quietTime, w.tell)
	}
}

func (w *waiting) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = nil
	if !w.said[w.what] && !closed(w.begun) {
		w.said[w.what] = true
		w.say(w.what)
	}
}

// end states that the process has a part, or that it ends.
func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	closeOnce(w.begun)
}

// interrupted returns the error of a process that was asked to end while it waited.
func (w *waiting) interrupted() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%w while it waited for %s; nothing was run", ErrInterrupted, w.what)
}

func closeOnce(c chan struct{}) {
	if !closed(c) {
		close(c)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
