package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// final is the answer of a run, for processes that ask for it.
type final struct {
	ready   chan struct{} // closed when the run is over
	fetched chan struct{} // receives after a delivery

	mu        sync.Mutex
	outcome   *Outcome
	attending int // connections
	closing   bool
	idle      chan struct{} // closed when closing is set and attending is 0
}

// init prepares a zero final.
func (f *final) init() {
	f.ready, f.fetched, f.idle = make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
}

// maxAttached bounds the connections of obstacle attach at one time.
const maxAttached = 16

// enter counts a connection and reports whether it may wait for the answer.
func (f *final) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing || f.attending >= maxAttached {
		return false
	}
	f.attending++
	return true
}

func (f *final) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attending--
	f.signal()
}

// signal is called with the lock held.
func (f *final) signal() {
	if f.closing && f.attending == 0 {
		close(f.idle)
	}
}

// drain accepts no more connections and waits until those that wait have got the answer, or until ctx ends.
func (f *final) drain(ctx context.Context) {
	f.mu.Lock()
	if !f.closing {
		f.closing = true
		f.signal()
	}
	f.mu.Unlock()
	select {
	case <-f.idle:
	case <-ctx.Done():
	}
}

// await returns when the answer was fetched, or with an error when the time is over or a request to end arrives.
func (f *final) await(ctx context.Context, hold time.Duration, requests [2]<-chan struct{}) error {
	late := time.NewTimer(hold)
	defer late.Stop()
	select {
	case <-f.fetched:
		return nil
	case <-requests[0]:
		return errAskedToEnd
	case <-requests[1]:
		return errAskedToEnd
	case <-late.C:
		return fmt.Errorf("no obstacle attach has fetched it within %v (--hold)", hold)
	case <-ctx.Done():
		return errAskedToEnd
	}
}

// errAskedToEnd is the error of a process that is asked to end while it keeps the answer.
var errAskedToEnd = errors.New("this process was asked to end, and no obstacle attach has fetched it")

// drainTime bounds for how long a process that is asked to end sends the answer to those that are connected.
const drainTime = 5 * time.Second

// hold keeps the answer until it was fetched, unless a checkpoint holds it and this process was asked to end. A
// request to end the process ends the wait; those that are connected still get the answer.
func (r *shell) hold(ctx context.Context, s *Succession, o *Outcome, requests [2]<-chan struct{}) error {
	f, err := &r.final, errAskedToEnd
	if o.Resumable && s.Leave != nil && isClosed(s.Leave) {
		r.Log.Info().Str("reason", o.Reason).Msg("the run has ended")
	} else {
		r.Log.Info().Str("reason", o.Reason).
			Msgf("the run has ended: obstacle attach %s fetches its answer", spelling.Word(s.Term.Leader))
		err = f.await(ctx, s.Hold, requests)
	}
	if err != nil {
		within, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		ctx = within
	}
	f.drain(ctx)
	if errors.Is(err, errAskedToEnd) && o.Resumable {
		return fmt.Errorf("%w: obstacle resume %s, on %s, continues it", ErrStopped, spelling.File(o.Checkpoint.Directory),
			spelling.Visible(o.Checkpoint.Host))
	}
	if err == nil || len(f.fetched) > 0 {
		return nil
	}
	return fmt.Errorf("the answer of the run (%s) is lost: %w", o.Reason, err)
}

// publish makes the answer available to obstacle attach.
func (r *shell) publish(o *Outcome) {
	r.final.outcome = o
	close(r.final.ready)
}

// attendEvery is the interval of progress messages to obstacle attach.
const attendEvery = 500 * time.Millisecond

// attend sends the state of the run to an obstacle attach, and then the answer.
func (r *shell) attend(conn *rendezvous.Conn) {
	defer conn.Close()
	f := &r.final
	if !f.enter() {
		_ = conn.Refuse("the run has ended, or too many processes wait for its answer")
		return
	}
	defer f.leave()
	r.Log.Debug().Str("address", conn.Remote()).Msg("obstacle attach follows the run")
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for sent, over := (views{steps: r.Problem.Steps()}), false; ; {
		state := r.Status.State()
		for _, v := range sent.next(&state) {
			if err := conn.Send(v); err != nil {
				return
			}
		}
		if over {
			break
		}
		select {
		case <-tick.C:
		case <-f.ready:
			over = true
		}
	}
	if err := r.deliver(conn); err != nil {
		r.Log.Warn().Err(err).Msg("obstacle attach has not got the answer")
		return
	}
	select {
	case f.fetched <- struct{}{}:
	default:
	}
}

// deliver sends the answer and waits until it has arrived.
func (r *shell) deliver(conn *rendezvous.Conn) error {
	o := r.final.outcome
	if o.U == nil {
		_ = conn.Refuse("the run failed: " + o.Failure)
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	problem := r.ProblemSpec.Marshal()
	answer := rendezvous.Answer{Spec: r.Spec, ProblemBytes: int64(len(problem)), Outcome: text}
	if err := conn.Send(answer); err != nil {
		return err
	}
	if err := sendBytes(conn, rendezvous.StreamProblem, problem); err != nil {
		return err
	}
	for _, u := range o.vectors() {
		if err := sendArray(conn, rendezvous.StreamSolution, *u); err != nil {
			return err
		}
	}
	_, err = conn.ReceiveWithin(max(r.PeerTimeout, StopTime), rendezvous.KindBye)
	return err
}

// vectors returns the iterates of an outcome that has an answer, in the order in which they are sent.
func (o *Outcome) vectors() []*[]float64 {
	all := []*[]float64{&o.U}
	if o.Last.Step > 0 {
		all = append(all, &o.Last.Before)
	}
	if o.Worst.Step > 0 && o.Worst.Step != o.Last.Step {
		all = append(all, &o.Worst.Before, &o.Worst.End)
	}
	return all
}

// attachTime bounds the silence of a process that leads a run, and the time between two pieces of its answer.
const attachTime = 30 * time.Second

// ErrNoAnswer is wrapped by errors of Attach for a run whose answer cannot be fetched.
var ErrNoAnswer = errors.New("the answer cannot be fetched")

// ElsewhereError is the error of Attach if the other end does not lead the run.
type ElsewhereError struct {
	Leader string // address of the process that led it last
	why    string
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%s; the last one that led it: %s", e.why, rendezvous.FirstWay(e.Leader))
}

// Attach follows a run until its end and returns its answer, with the text of the problem. conn is connected to the
// process that leads the run. The status is that of the run; viewed is called after every report.
func Attach(
	conn *rendezvous.Conn, status *Status, viewed func(rendezvous.View),
) (run rendezvous.Spec, text []byte, o *Outcome, err error) {
	var a rendezvous.Answer
	for a.Outcome == nil {
		m, err := conn.ReceiveWithin(attachTime, rendezvous.KindView, rendezvous.KindAnswer, rendezvous.KindRefuse)
		if err != nil {
			return run, nil, nil, err
		}
		switch m := m.(type) {
		case rendezvous.View:
			if err := status.view(&m); err != nil {
				return run, nil, nil, fmt.Errorf("%w: the state of the run: %w", rendezvous.ErrMalformed, err)
			}
			viewed(m)
		case rendezvous.Answer:
			a = m
		case rendezvous.Refuse:
			if m.Later {
				return run, nil, nil, &ElsewhereError{m.Leader, m.Reason}
			}
			return run, nil, nil, fmt.Errorf("%w: %s", ErrNoAnswer, m.Reason)
		}
	}
	o = &Outcome{}
	if err := rendezvous.Nested(a.Outcome, o); err != nil {
		return run, nil, nil, fmt.Errorf("the answer: %w", err)
	}
	if err := checkAnswer(&a, o); err != nil {
		return run, nil, nil, err
	}
	if text, err = receiveBytes(conn, rendezvous.StreamProblem, a.ProblemBytes); err != nil {
		return run, nil, nil, err
	}
	n := a.Spec.N
	for _, u := range o.vectors() {
		values, err := receiveBytes(conn, rendezvous.StreamSolution, 8*int64(n[0])*int64(n[1])*int64(n[2]))
		if err != nil {
			return run, nil, nil, err
		}
		*u = make([]float64, len(values)/8)
		blocks.Decode(*u, values)
	}
	o.shareEnds()
	return a.Spec, text, o, conn.Send(rendezvous.Bye{})
}

// shareEnds sets the iterates that are sent only once.
func (o *Outcome) shareEnds() {
	if o.Last.Step > 0 {
		o.Last.End = o.U
	}
	if o.Worst.Step == o.Last.Step {
		o.Worst = o.Last
	}
}

// checkAnswer returns an error if an answer contradicts itself.
func checkAnswer(a *rendezvous.Answer, o *Outcome) error {
	cut := a.Spec.Partition
	if err := CheckCut(a.Spec.N, cut); err != nil {
		return fmt.Errorf("%w: the answer: %w", rendezvous.ErrMalformed, err)
	}
	if n := cut.Peers(); len(o.Peers) != n || len(o.Boxes) != n || len(o.Hosts) != n || a.ProblemBytes < 1 ||
		a.ProblemBytes > MaxProblemBytes {
		return fmt.Errorf("%w: the answer of %d peers has %d results and a problem of %d bytes", rendezvous.ErrMalformed, n,
			len(o.Peers), a.ProblemBytes)
	}
	if last := o.Last.Step; o.Steps < 0 || last != 0 && last != o.Steps || o.Worst.Step < 0 || o.Worst.Step > last {
		return fmt.Errorf("%w: the answer of %d time steps has values of steps %d and %d", rendezvous.ErrMalformed, o.Steps,
			last, o.Worst.Step)
	}
	return nil
}

// CheckCut returns an error for a grid of n points that is too large or whose partition is not one of it.
func CheckCut(n [3]int, cut problem.Partition) error {
	if err := problems.CheckGrid(Dimension(n), n); err != nil {
		return err
	}
	return cut.Validate(n)
}

// Dimension returns the number of axes on which a grid of n points has more than one.
func Dimension(n [3]int) int {
	dimension := 3
	for dimension > 1 && n[dimension-1] == 1 {
		dimension--
	}
	return dimension
}

// MaxProblemBytes bounds the size of a problem.
const MaxProblemBytes = file.MaxTextBytes + file.MaxArrayBytes + 1<<20

// receiveBytes receives a stream of the given length.
func receiveBytes(conn *rendezvous.Conn, s rendezvous.Stream, length int64) (data []byte, err error) {
	for int64(len(data)) < length {
		m, err := conn.ReceiveWithin(attachTime, rendezvous.KindChunk)
		if err != nil {
			return nil, err
		}
		c := m.(rendezvous.Chunk)
		if c.Stream != s || c.Offset != int64(len(data)) || len(c.Data) == 0 || c.Offset+int64(len(c.Data)) > length {
			return nil, fmt.Errorf("%w: a chunk of stream %d at %d of %d", rendezvous.ErrMalformed, c.Stream, c.Offset, length)
		}
		data = append(data, c.Data...)
	}
	return data, nil
}
