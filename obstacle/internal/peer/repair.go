package peer

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// repair computes the values of this peer's box, which was lost with another peer, and reports how.
func (p *peer) repair(ctx context.Context, end *endpoint, w *work) error {
	begin := time.Now()
	a := w.assign.Repair
	u, held := p.values.held()
	own := repair.Missing(p.box(), held)
	faces := repair.NewFaces(p.problem, a.Holes)
	values := w.around
	for _, b := range a.Around {
		n := 0
		for _, s := range repair.Shell(p.problem, a.Holes, b) {
			n += s.Points()
		}
		n = min(n, len(values))
		if err := faces.Add(b, values[:n]); err != nil {
			return err
		}
		values = values[n:]
	}
	group := []problem.Box{own}
	for _, g := range repair.Groups(a.Holes) {
		if slices.Contains(g, own) {
			group = g
		}
	}
	threads := p.welcome.Spec.Threads
	if (&epoch{endpoint: end, work: w}).allStop([]int{p.welcome.Rank}) {
		threads = max(threads, runtime.GOMAXPROCS(0))
	}
	pool := runner.NewPool(threads)
	defer pool.Close()
	var arrays host.Arrays
	res, err := repair.Solve(repair.Hole{
		Problem: p.problem, Partition: p.cut, Boxes: group, Value: faces.Value, New: p.Catalog.Methods.New, Executor: pool,
		Allocate: arrays.Take, Tolerance: a.Tolerance, Stop: func() bool { return ctx.Err() != nil },
	})
	p.arrays.Merge(&arrays)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done := rendezvous.Repaired{
		Epoch: w.assign.Epoch, Method: res.Method, Iterates: uint64(res.Sweeps), Residual: nullable.Number(res.Residual),
		Refused: res.Refused,
	}
	if err != nil {
		p.log.Warn().Err(err).Msg("a method cannot repair the block of a lost peer")
	}
	if err := repair.CheckBound(p.problem, group); err != nil {
		done.Unbound = err.Error()
	}
	p.values.set(repair.Join(p.box(), held, u, own, res.Values(own)), p.box())
	done.Seconds = time.Since(begin).Seconds()
	p.log.Info().Str("method", res.Method).Float64("residual", res.Residual).Float64("seconds", done.Seconds).
		Msg("repaired the block of a lost peer")
	return p.leader.Send(done)
}
