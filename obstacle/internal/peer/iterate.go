package peer

import (
	"context"
	"errors"
	"runtime"

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

// iterate runs to the verdict, hands over the block and the account of the run, and stays
// until the launcher ends the run: others may still need messages that it sent last. An
// error means that the run failed.
func (p *peer) iterate(ctx context.Context, o *orders, r *runner.Runner, idle int64) error {
	used := host.CPUTime()
	telling, enough := context.WithCancel(ctx)
	defer enough()
	if p.assign.Status {
		go p.tellSessions(telling)
	}
	p.reporter = newReporter(p.conn, p.assign.Balance)
	res, err := r.Run(ctx)
	p.reporter.close()
	enough()
	select {
	case <-o.bye:
		return errOver
	default:
	}
	p.log.Info().Uint64("sweeps", uint64(res.Sweeps)).Float64("residual", res.Residual).Err(err).Msg("iterated")
	out := account(&res, err)
	if lost, is := announced(o); is && err != nil {
		out.Error, out.Lost = lost.Why, lost.Rank
	}
	out.CPUSeconds = (host.CPUTime() - used).Seconds()
	out.Points, out.Kernel, out.Method = r.Box().Points(), kernel.Best().Name(), r.Method()
	out.IdleBytes, out.Sessions, out.Refused = idle, p.sessions(), p.refused()
	out.Device, out.Without = p.device(), p.without
	if err := p.handOver(r, out); err != nil {
		return errOver
	}
	// The launcher may stand still for as long as its user likes: the end of the connection
	// is what bounds this wait.
	<-o.bye
	if lost, is := announced(o); is {
		return &ToldError{lost.Why}
	}
	if !o.ended {
		return errOver
	}
	return nil
}

// announced is what the launcher said of a lost peer, if it did.
func announced(o *orders) (rendezvous.Lost, bool) {
	select {
	case <-o.lost:
		return o.why, true
	default:
		return rendezvous.Lost{}, false
	}
}

// account puts a run into words.
func account(res *runner.Result, err error) rendezvous.Result {
	out := rendezvous.Result{
		Lost: -1, Sweeps: uint64(res.Sweeps), Iterate: uint64(res.Iterate), Residual: nullable.Number(res.Residual),
		Steps: res.Steps, Reconfigurations: res.Changes, ReconfigurationSeconds: res.Changing.Seconds(), StaleFaces: res.Stale,
		Relaxed: res.Points, Given: res.Given, Taken: res.Taken,
		Snapshots: res.Snapshots, Seconds: res.Elapsed.Seconds(), Sessions: []rendezvous.Session{},
	}
	if err != nil {
		out.Reason, out.Error, out.Lost = launch.Failed, oneLine(err), lostRank(err)
		return out
	}
	switch res.Reason {
	case iterate.Converged:
		out.Reason = launch.Converged
	case iterate.ReachedSweeps:
		out.Reason = launch.Sweeps
	case iterate.ReachedTime:
		out.Reason = launch.Time
	case iterate.Interrupted:
		out.Reason = launch.Interrupted
	case iterate.Stagnated:
		out.Reason = launch.Stagnated
	default:
		out.Reason, out.Error = launch.Failed, "the run "+res.Reason.String()
	}
	return out
}

// lostRank is the rank of the peer that an error says is lost, −1 for others.
func lostRank(err error) int {
	var lost *p2psap.PeerLostError
	if errors.As(err, &lost) {
		if rank := rankOf(lost.Peer); rank >= 0 {
			return rank
		}
	}
	var neighbour *runner.NeighbourError
	if errors.As(err, &neighbour) && errors.Is(err, p2psap.ErrPeerClosed) {
		return int(neighbour.Rank)
	}
	return -1
}

// largeBox is the number of points from which memory is worth a collection.
const largeBox = 1 << 20

// handOver sends the block in pieces, and the account last.
func (p *peer) handOver(r *runner.Runner, out rendezvous.Result) error {
	box := r.Box()
	if p.Answer != nil {
		n := p.assign.N
		answer, err := p.Answer(n[0] * n[1] * n[2])
		if err == nil {
			return p.place(r, answer, out)
		}
		p.log.Warn().Err(err).Msg("the block is sent instead")
	}
	u := host.Array(box.Points())
	r.Solution(u)
	discard(r)
	if err := sendBlock(p.conn, rendezvous.StreamSolution, p.assign.Balance, box, u); err != nil {
		return err
	}
	out.PeakBytes = host.PeakBytes()
	return p.conn.Send(out)
}

// discard gives up what the method worked with: the launcher, which may share this process,
// is about to need memory.
func discard(r *runner.Runner) {
	points := r.Box().Points()
	r.Discard()
	if points >= largeBox {
		runtime.GC()
	}
}

// place writes the block where the launcher wants it, and sends the account.
func (p *peer) place(r *runner.Runner, answer []float64, out rendezvous.Result) error {
	n, box := p.assign.N, r.Box()
	if p.assign.Balance {
		if err := p.conn.Send(rendezvous.BlockOf(rendezvous.StreamSolution, box)); err != nil {
			return err
		}
	}
	if dst := blocks.Slice(answer, n, box); dst != nil {
		r.Solution(dst)
	} else {
		u := make([]float64, box.Points())
		r.Solution(u)
		blocks.Copy(answer, n, box, u)
	}
	out.Placed, out.PeakBytes = true, host.PeakBytes()
	discard(r)
	return p.conn.Send(out)
}
