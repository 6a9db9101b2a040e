package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// slowStorage is the speed of the slowest storage for which the program waits, in bytes a second.
const slowStorage = 10 << 20

// patience returns how long the program waits for storage: --peer-timeout, and the time that slow storage needs for some
// bytes.
func patience(peerTimeout time.Duration, bytes int) time.Duration {
	return peerTimeout + time.Duration(float64(bytes)/slowStorage*float64(time.Second))
}

// patient returns the context of a wait for storage, which lasts at most for a limit, after another wait. It ends with
// ctx, unless that has already ended: then the user has asked for the end before, and files are still written.
func patient(ctx context.Context, limit, before time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	why := fmt.Errorf("it has not answered for %v (--peer-timeout)", (before + limit).Round(time.Second))
	return context.WithTimeoutCause(ctx, limit, why)
}

// limited calls write, which blocks for ever if storage does not answer. It returns an error at the end of patient, and
// leaves the call blocked.
func limited(ctx context.Context, limit time.Duration, write func() error) error {
	ctx, cancel := patient(ctx, limit, 0)
	defer cancel()
	_, err := input.Within(ctx, func() (struct{}, error) { return struct{}{}, write() })
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return &unanswered{err}
	}
	return err
}

// unanswered is the error of storage that does not answer.
type unanswered struct{ error }

// writings are the files of an answer. A goroutine writes each of them. So a file whose storage does not answer delays
// neither the answer nor another file.
type writings struct {
	before, after time.Duration // bounds of the waits for them before and after the answer is printed
	interrupted   bool          // the user has ended the first wait
	all           []*writing
}

// wait sets for how long the program waits for the files, which hold about so many bytes. An answer that names all of
// them is better than one a little earlier: it is printed first only if half of the peer timeout is over.
func (w *writings) wait(peerTimeout time.Duration, bytes int) {
	w.before, w.after = patience(peerTimeout/2, bytes), peerTimeout/2
}

type writing struct {
	name  string
	late  bool // the answer was printed before the file was written
	ended chan struct{}
	err   error // once it has ended
}

// begin calls write, which writes a file.
func (w *writings) begin(name string, write func() error) {
	f := &writing{name: name, ended: make(chan struct{})}
	w.all = append(w.all, f)
	go func() {
		defer close(f.ended)
		f.err = write()
	}()
}

// prompt returns the entries of the files for the answer, once all are written or some hang. The end of ctx ends the wait.
func (w *writings) prompt(ctx context.Context) []report.Output {
	alive := ctx.Err() == nil
	limited, cancel := patient(ctx, w.before, 0)
	defer cancel()
	out := []report.Output{}
	for _, f := range w.all {
		select {
		case <-f.ended:
		case <-limited.Done():
		}
		select {
		case <-f.ended:
			out = append(out, outcomeOf(f.name, f.err))
		default:
			f.late = true
			out = append(out, report.Output{File: f.name, Pending: true})
		}
	}
	w.interrupted = alive && ctx.Err() != nil
	return out
}

// finish waits for the files after the answer was printed, and returns the exit error of those that were not written.
func (a *app) finish(ctx context.Context, w *writings) error {
	var out []report.Output
	ctx, cancel := patient(ctx, w.after, w.before)
	defer cancel()
	if w.interrupted {
		cancel()
	}
	for _, f := range w.all {
		select {
		case <-f.ended:
		case <-ctx.Done():
		}
		select {
		case <-f.ended:
			if f.late && f.err == nil {
				a.say(f.name + ": written")
			}
			out = append(out, outcomeOf(f.name, f.err))
		default:
			why := context.Cause(ctx)
			if errors.Is(why, context.Canceled) {
				why = errors.New("the wait for its storage was interrupted")
			}
			out = append(out, outcomeOf(f.name, fmt.Errorf("output %s: %w", f.name, why)))
		}
	}
	return unwritten(out)
}
