package peer

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// announce tells the leader that this peer is ready to relax.
func (p *peer) announce(e *epoch) error {
	p.settled.Store(int64(e.assign.Epoch))
	if p.leader.Send(rendezvous.Ready{Epoch: e.assign.Epoch}) != nil {
		return member.ErrLauncherLeft
	}
	return nil
}

// relax relaxes in an epoch. It returns errNextEpoch, and keeps the values, if the relaxation was abandoned.
func (p *peer) relax(e *epoch) error {
	r := e.runner
	p.relaxes.Store(e.endpoint)
	defer p.relaxes.Store(nil)
	reporting, endReports := context.WithCancel(p.running)
	defer endReports()
	if p.welcome.Spec.Reports {
		former := p.former.sent
		go p.sendEvery(reporting, launch.StatusEvery, func() rendezvous.Message {
			return rendezvous.Sessions{Sessions: e.sessions(), Former: former, Account: p.account(e.assign)}
		})
	}
	res, err := r.Run(p.running)
	e.others = p.others.end()
	if errors.Is(err, runner.ErrAbandoned) {
		u := solutionOf(r)
		p.copies.freeze(r.Progress().Sweep, u)
		p.former.add(&res)
		p.values.keep(u, r.Box(), r.Progress())
		return member.ErrNextEpoch
	}
	e.result, e.failure = res, err
	p.log.Info().Uint64("sweeps", uint64(res.Sweeps)).Float64("residual", res.Residual).Str("method_about", r.Method()).
		Err(err).Msg("iterated")
	return err
}

// beginToRelax sets what the relaxation in an epoch changes.
func (p *peer) beginToRelax(e *epoch) {
	if e.assign.Resume != nil {
		p.former.sweeps = 0 // those of the iterate count
	}
	if p.former.sweeps = max(p.former.sweeps, e.assign.Sweeps); p.began.IsZero() {
		p.began, p.used = time.Now(), host.CPUTime()
	}
	p.former.seconds = time.Since(p.began).Seconds()
	if before := p.progress.Load(); before != nil { // its residual is that of the epoch before
		now := *before
		now.Residual = math.NaN()
		p.progress.Store(&now)
	}
	p.values.continueFrom(iterate.Iteration(p.former.sweeps))
	p.values.begin(e.runner)
	p.others.begin()
	e.relaxed = true
}

// keepAnswer keeps the values of an epoch, and makes the answer of them. If the run has failed, the answer has the reason.
func (p *peer) keepAnswer(e *epoch, lost *rendezvous.Lost) {
	out := account(&e.result, e.failure)
	if e.failure != nil && lost != nil {
		out.Error, out.Lost = lost.Why, lost.Rank
	}
	p.describe(&out, e)
	out.Points, out.Method = e.runner.Box().Points(), e.runner.Method()
	p.former.add(&e.result)
	p.answer = p.answerOf(e.runner, out)
}

// surrender makes an answer of the values that this peer has when the run has failed between two epochs.
func (p *peer) surrender(s member.Surrender) {
	u, box := p.values.held()
	out := rendezvous.Result{
		Epoch: s.Epoch, Reason: launch.Failed, Error: s.Why.Why, Lost: s.Why.Rank, Residual: nullable.NaN(),
		Points: len(u), Sweeps: p.former.sweeps, Seconds: p.former.seconds, Relaxed: p.former.relaxed,
		Sessions: []rendezvous.Session{}, PeakBytes: host.PeakBytes(), Processors: p.processors,
	}
	p.answer = func(conn *rendezvous.Conn) error {
		return errors.Join(sendBlock(conn, rendezvous.StreamSolution, p.balanced, box, u), conn.Send(out))
	}
}

// describe sets the fields of a result that describe the process and the endpoint, and adds former epochs.
func (p *peer) describe(out *rendezvous.Result, e *epoch) {
	out.Epoch = e.assign.Epoch
	out.Sweeps += p.former.sweeps
	out.Seconds += p.former.seconds
	out.Relaxed += p.former.relaxed
	out.CPUSeconds = (host.CPUTime() - p.used).Seconds()
	out.Kernel, out.IdleBytes = kernel.Best().Name(), p.idle
	out.Sessions, out.Former, out.Refused = e.sessions(), p.former.sent, e.refused()
	out.Account = p.account(e.assign)
	out.Device, out.Without = e.ib.Device, e.noIB
}

func solutionOf(r *runner.Runner) []float64 {
	u := host.Array(r.Box().Points())
	r.Solution(u)
	return u
}

func account(res *runner.Result, err error) rendezvous.Result {
	out := rendezvous.Result{
		Lost: -1, Sweeps: uint64(res.Sweeps), Residual: nullable.Number(res.Residual), StaleFaces: res.StaleHalos,
		Reconfigurations: res.Changes, ReconfigurationSeconds: res.Changing.Seconds(),
		Relaxed: res.Points, Given: res.PlanesSent, Taken: res.PlanesReceived,
		State: res.State, Snapshots: res.Snapshots, Seconds: res.Elapsed.Seconds(), Sessions: []rendezvous.Session{},
	}
	if err != nil {
		out.Reason, out.Error, out.Lost = launch.Failed, oneLine(err), lostRank(err)
		_, out.Panicked = errors.AsType[*iterate.PanicError](err)
		return out
	}
	out.Reason = map[iterate.Reason]string{
		iterate.Converged: launch.Converged, iterate.ReachedSweeps: launch.Sweeps, iterate.ReachedTime: launch.Time,
		iterate.Interrupted: launch.Interrupted, iterate.Stagnated: launch.Stagnated,
		iterate.Diverged: launch.Diverged,
	}[res.Reason]
	switch {
	case res.Reason == iterate.Running: // the goroutine has ended
		out.Reason, out.Error = launch.Failed, errGoexit.Error()
	case out.Reason == "":
		out.Reason, out.Error = launch.Failed, "the run "+res.Reason.String()
	}
	return out
}

// lostRank returns the rank of the lost peer that an error names, −1 for other errors.
func lostRank(err error) int {
	if lost, is := errors.AsType[*p2psap.PeerLostError](err); is && rankOf(lost.Peer) >= 0 {
		return rankOf(lost.Peer)
	}
	if neighbour, is := errors.AsType[*runner.NeighbourError](err); is && errors.Is(err, p2psap.ErrPeerClosed) {
		return int(neighbour.Rank)
	}
	return -1
}

// largeBox is the number of points from which freeMethod collects garbage.
const largeBox = 1 << 20

// answerOf returns a function that sends the block, or writes it to shared memory, and then sends the result. The peer
// keeps the block, from which it goes on if another one is lost before the end.
func (p *peer) answerOf(r *runner.Runner, out rendezvous.Result) func(*rendezvous.Conn) error {
	box, n, planes := r.Box(), p.welcome.Spec.N, p.welcome.Spec.Balance
	var dst []float64 // the shared memory; nil: none
	if p.Answer != nil {
		answer, err := p.Answer(n[0] * n[1] * n[2])
		if err != nil {
			p.log.Warn().Err(err).Msg("no shared memory: sending the block")
		}
		dst = answer
	}
	var u []float64
	if dst != nil {
		u = blocks.Slice(dst, n, box)
		host.Populate(u)
	}
	if u == nil {
		u = host.Array(box.Points())
	}
	r.Solution(u)
	kept := u
	if !p.welcome.Spec.Recovers() {
		kept = nil
	}
	p.copies.freeze(r.Progress().Sweep, kept)
	p.values.keep(kept, box, r.Progress())
	p.freeMethod(r, box.Points())
	out.Processors = p.processors
	return func(conn *rendezvous.Conn) error {
		var err error
		switch {
		case dst == nil:
			err = sendBlock(conn, rendezvous.StreamSolution, planes, box, u)
		case planes:
			err = conn.Send(rendezvous.Block{Stream: rendezvous.StreamSolution, Box: box})
		}
		if err != nil {
			return err
		}
		if dst != nil {
			blocks.Copy(dst, n, box, u)
			out.Placed = true
		}
		out.PeakBytes = host.PeakBytes()
		return conn.Send(out)
	}
}

// freeMethod frees the memory of the method, since the launcher, which may be in the same process, needs memory next.
func (p *peer) freeMethod(r *runner.Runner, points int) {
	r.Discard()
	p.arrays.Forget()
	if points >= largeBox {
		runtime.GC()
	}
}
