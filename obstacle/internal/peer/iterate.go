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
		go p.sendEvery(reporting, launch.StatusEvery, func() rendezvous.Message {
			return rendezvous.Sessions{Sessions: p.sessions()}
		})
	}
	p.reporter = newReporter(p.conn, p.assign.Balance)
	res, err := r.Run(ctx)
	p.reporter.close()
	endReports()
	if closed(o.bye) {
		return errLauncherLeft
	}
	p.log.Info().Uint64("sweeps", uint64(res.Sweeps)).Float64("residual", res.Residual).Err(err).Msg("iterated")
	out := account(&res, err)
	if err != nil && closed(o.lost) {
		out.Error, out.Lost = o.why.Why, o.why.Rank
	}
	out.CPUSeconds = (host.CPUTime() - used).Seconds()
	out.Points, out.Kernel, out.Method = r.Box().Points(), kernel.Best().Name(), r.Method()
	out.IdleBytes, out.Sessions, out.Refused = idle, p.sessions(), p.refused()
	out.Device, out.Without = p.ib.Device, p.noIB
	if err := p.sendAnswer(r, out); err != nil {
		return errLauncherLeft
	}
	// The launcher may be stopped for any time, so only the end of the connection bounds this wait.
	<-o.bye
	if closed(o.lost) {
		return &ReportedError{o.why.Why}
	}
	if !o.ended {
		return errLauncherLeft
	}
	return nil
}

func account(res *runner.Result, err error) rendezvous.Result {
	out := rendezvous.Result{
		Lost: -1, Sweeps: uint64(res.Sweeps), Residual: nullable.Number(res.Residual), StaleFaces: res.StaleHalos,
		Reconfigurations: res.Changes, ReconfigurationSeconds: res.Changing.Seconds(),
		Relaxed: res.Points, Given: res.PlanesSent, Taken: res.PlanesReceived,
		Snapshots: res.Snapshots, Seconds: res.Elapsed.Seconds(), Sessions: []rendezvous.Session{},
	}
	if err != nil {
		out.Reason, out.Error, out.Lost = launch.Failed, oneLine(err), lostRank(err)
		return out
	}
	out.Reason = map[iterate.Reason]string{
		iterate.Converged: launch.Converged, iterate.ReachedSweeps: launch.Sweeps, iterate.ReachedTime: launch.Time,
		iterate.Interrupted: launch.Interrupted, iterate.Stagnated: launch.Stagnated,
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
	out.PeakBytes, out.Processors = host.PeakBytes(), p.processors
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
		if err := p.conn.Send(rendezvous.Block{Stream: rendezvous.StreamSolution, Box: box}); err != nil {
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
	out.Placed, out.PeakBytes, out.Processors = true, host.PeakBytes(), p.processors
	freeMethod(r)
	return p.conn.Send(out)
}
