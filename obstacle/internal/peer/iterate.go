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

// iterate relaxes until the end, sends the block and the result, and waits until the launcher ends the run, since
// other peers may still need its last messages. An error means that the run failed.
func (p *peer) iterate(ctx context.Context, o *commands, r *runner.Runner, idle int64) error {
	used := host.CPUTime()
	reporting, endReports := context.WithCancel(ctx)
	defer endReports()
	if p.assign.Status {
		go p.reportSessions(reporting)
	}
	p.reporter = newReporter(p.conn, p.assign.Balance)
	res, err := r.Run(ctx)
	p.reporter.close()
	endReports()
	select {
	case <-o.bye:
		return errLauncherLeft
	default:
	}
	p.log.Info().Uint64("sweeps", uint64(res.Sweeps)).Float64("residual", res.Residual).Err(err).Msg("iterated")
	out := account(&res, err)
	if lost, is := lostPeer(o); is && err != nil {
		out.Error, out.Lost = lost.Why, lost.Rank
	}
	out.CPUSeconds = (host.CPUTime() - used).Seconds()
	out.Points, out.Kernel, out.Method = r.Box().Points(), kernel.Best().Name(), r.Method()
	out.IdleBytes, out.Sessions, out.Refused = idle, p.sessions(), p.refused()
	out.Device, out.Without = p.device(), p.noIB
	if err := p.sendAnswer(r, out); err != nil {
		return errLauncherLeft
	}
	// The launcher may be stopped for any time, so only the end of the connection bounds this wait.
	<-o.bye
	if lost, is := lostPeer(o); is {
		return &ReportedError{lost.Why}
	}
	if !o.ended {
		return errLauncherLeft
	}
	return nil
}

// lostPeer returns the message of the launcher about a lost peer, if there was one.
func lostPeer(o *commands) (rendezvous.Lost, bool) {
	select {
	case <-o.lost:
		return o.why, true
	default:
		return rendezvous.Lost{}, false
	}
}

// account returns the result of a run.
func account(res *runner.Result, err error) rendezvous.Result {
	out := rendezvous.Result{
		Lost: -1, Sweeps: uint64(res.Sweeps), Iterate: uint64(res.Iterate), Residual: nullable.Number(res.Residual),
		Steps: res.Steps, StaleFaces: res.StaleHalos,
		Reconfigurations: res.Changes, ReconfigurationSeconds: res.Changing.Seconds(),
		Relaxed: res.Points, Given: res.PlanesSent, Taken: res.PlanesReceived,
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

// lostRank returns the rank of the lost peer that an error names, −1 for other errors.
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

// largeBox is the number of points from which freeMethod collects garbage.
const largeBox = 1 << 20

// sendAnswer sends the block, or writes it to shared memory, and then sends the result.
func (p *peer) sendAnswer(r *runner.Runner, out rendezvous.Result) error {
	box := r.Box()
	if p.Answer != nil {
		n := p.assign.N
		answer, err := p.Answer(n[0] * n[1] * n[2])
		if err == nil {
			return p.writeAnswer(r, answer, out)
		}
		p.log.Warn().Err(err).Msg("no shared memory: sending the block")
	}
	u := host.Array(box.Points())
	r.Solution(u)
	freeMethod(r)
	if err := sendBlock(p.conn, rendezvous.StreamSolution, p.assign.Balance, box, u); err != nil {
		return err
	}
	out.PeakBytes = host.PeakBytes()
	return p.conn.Send(out)
}

// freeMethod frees the memory of the method, since the launcher, which may be in the same process, needs memory next.
func freeMethod(r *runner.Runner) {
	points := r.Box().Points()
	r.Discard()
	if points >= largeBox {
		runtime.GC()
	}
}

// writeAnswer writes the block to shared memory and sends the result.
func (p *peer) writeAnswer(r *runner.Runner, answer []float64, out rendezvous.Result) error {
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
	freeMethod(r)
	return p.conn.Send(out)
}
