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
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// work relaxes in one epoch. If that is the last, it sends the block and the result, and waits until the launcher ends
// the run, since other peers may still need its last messages. An error means that the run failed. errNextEpoch means
// that a newer epoch begins.
func (p *peer) work(ctx context.Context, e *epoch) error {
	defer p.arrays.Return()
	defer e.abort() // the launcher sends Bye when it has every result, so no peer needs messages in transit
	c := p.commands
	ended := context.AfterFunc(ctx, e.abort) // without a launcher there is no need to wait for other peers
	defer ended()
	lost := make(chan struct{})
	defer close(lost)
	go func() {
		select {
		case <-c.lost:
			e.abort() // ends every blocking call
		case <-lost:
		}
	}()
	if p.idle == 0 {
		p.idle = host.PeakBytes()
	}
	r, err := p.prepare(e)
	switch {
	case err != nil && e.ctx.Err() != nil && ctx.Err() == nil:
		return errNextEpoch
	case err != nil && closed(c.lost) && p.values.known():
		return p.surrender()
	case err != nil:
		return err
	}
	defer r.Close()
	defer e.abort()
	if e.beginSteps() != nil {
		return errNextEpoch
	}
	p.settled.Store(int64(e.assign.Epoch))
	if err := p.leader.Send(rendezvous.Ready{Epoch: e.assign.Epoch}); err != nil {
		return errLauncherLeft
	}
	if err := c.awaitStart(e.assign.Epoch); err != nil {
		return err
	}
	err = p.iterate(ctx, e, r)
	if errors.Is(err, errNextEpoch) {
		all := e.sessions()
		for i := range all {
			p.former.sent.AddSession(&all[i])
		}
	}
	return err
}

// iterate runs a runner, and does what follows the end of its run.
func (p *peer) iterate(ctx context.Context, e *epoch, r *runner.Runner) error {
	c := p.commands
	if e.assign.Resume != nil {
		p.former.sweeps = 0 // those of the iterate count
	}
	if p.former.sweeps = max(p.former.sweeps, e.assign.Sweeps); p.began.IsZero() {
		p.began, p.used = time.Now(), host.CPUTime()
	}
	p.former.seconds = time.Since(p.began).Seconds()
	former := p.former.sent
	reporting, endReports := context.WithCancel(ctx)
	defer endReports()
	if e.p.welcome.Spec.Reports {
		go p.sendEvery(reporting, launch.StatusEvery, func() rendezvous.Message {
			return rendezvous.Sessions{Sessions: e.sessions(), Former: former, Account: p.account(e.assign)}
		})
	}
	if before := p.progress.Load(); before != nil { // its residual is that of the epoch before
		now := *before
		now.Residual = math.NaN()
		p.progress.Store(&now)
	}
	p.values.continueFrom(iterate.Iteration(p.former.sweeps))
	if !p.values.begin(r, e.assign.Epoch) {
		return errNextEpoch
	}
	p.others.begin()
	res, err := r.Run(ctx)
	over := p.others.end()
	endReports()
	if errors.Is(err, runner.ErrAbandoned) {
		u := solutionOf(r)
		p.copies.freeze(r.Progress().Sweep, u)
		p.former.add(&res)
		p.values.keep(u, r.Box(), r.Progress())
		return errNextEpoch
	}
	if closed(c.bye) {
		p.values.keep(nil, r.Box(), r.Progress())
		return errLauncherLeft
	}
	p.log.Info().Uint64("sweeps", uint64(res.Sweeps)).Float64("residual", res.Residual).Str("method_about", r.Method()).
		Err(err).Msg("iterated")
	out := account(&res, err)
	if err != nil && closed(c.lost) {
		out.Error, out.Lost = c.why.Why, c.why.Rank
	}
	if err == nil {
		select { // what follows takes the processor from peers that pass the verdict on
		case <-over:
		case <-c.after(e.assign.Epoch):
		case <-c.bye:
		case <-c.lost:
		}
	}
	p.describe(&out, e)
	out.Points, out.Method = r.Box().Points(), r.Method()
	p.former.add(&res)
	return p.deliver(p.answer(r, out), c.after(e.assign.Epoch))
}

// deliver sends an answer, after the ends of all time steps, and waits until the launcher ends the run, or begins a newer
// epoch. If another process leads the run meanwhile, it sends the answer again.
func (p *peer) deliver(send func(*rendezvous.Conn) error, newer <-chan struct{}) error {
	c := p.commands
	var to *rendezvous.Conn // that has the answer
	for {
		conn, changed := p.leader.current()
		all, progress := p.ends.sent(conn)
		lost := c.lost
		if all || closed(lost) {
			progress, lost = nil, nil
			if to != conn && send(conn) != nil {
				conn.Close() // receive notices it, too
			}
			to = conn
		}
		// The launcher may be stopped for any time, so only the end of the connection bounds this wait.
		select {
		case <-newer:
			return errNextEpoch
		case <-c.bye:
			return p.ended()
		case <-changed:
		case <-progress:
		case <-lost:
		}
	}
}

// ended returns the error of a peer that has sent its answer, when the connection to the launcher has ended.
func (p *peer) ended() error {
	c := p.commands
	switch {
	case closed(c.lost):
		return c.failed()
	case !c.ended:
		return errLauncherLeft
	}
	return nil
}

// surrender sends the values that this peer has when the run has failed between two epochs.
func (p *peer) surrender() error {
	c := p.commands
	u, box := p.values.held()
	if u == nil {
		return c.failed()
	}
	out := rendezvous.Result{
		Epoch: c.newest(), Reason: launch.Failed, Error: c.why.Why, Lost: c.why.Rank, Residual: nullable.NaN(),
		Points: len(u), Sweeps: p.former.sweeps, Seconds: p.former.seconds, Relaxed: p.former.relaxed,
		Sessions: []rendezvous.Session{}, PeakBytes: host.PeakBytes(), Processors: p.processors,
	}
	return p.deliver(func(conn *rendezvous.Conn) error {
		return errors.Join(sendBlock(conn, rendezvous.StreamSolution, p.balanced, box, u), conn.Send(out))
	}, nil)
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
		return out
	}
	out.Reason = map[iterate.Reason]string{
		iterate.Converged: launch.Converged, iterate.ReachedSweeps: launch.Sweeps, iterate.ReachedTime: launch.Time,
		iterate.Interrupted: launch.Interrupted, iterate.Stagnated: launch.Stagnated,
		iterate.Diverged: launch.Diverged,
	}[res.Reason]
	if out.Reason == "" {
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

// answer returns a function that sends the block, or writes it to shared memory, and then sends the result. The peer
// keeps the block, from which it goes on if another one is lost before the end.
func (p *peer) answer(r *runner.Runner, out rendezvous.Result) func(*rendezvous.Conn) error {
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
