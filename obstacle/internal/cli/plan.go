package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/spawn"
	"github.com/p2pdc/p2pdc/obstacle/internal/tracefile"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// spawnTime is how long a peer that the launcher started may take to join.
const spawnTime = 60 * time.Second

// plan turns work into a run, and says where its peers come from.
func (a *app) plan(q *request, w *work) (launch.Plan, error) {
	p := launch.Plan{
		Spec: w.spec, Problem: w.problem, Partition: w.partition, Initial: w.initial,
		Scheme: w.scheme.Name(), Method: w.method, Order: w.order.String(), Tolerance: q.tol, MaxSweeps: q.maxSweeps, MaxTime: q.maxTime,
		Balance: w.balance, Reconfigure: q.stepMode != "never", Threads: w.threads, Slowdown: w.slow, Label: w.label, MTU: q.mtu, Protect: q.protect, Congestion: q.rows.congestion, Rows: q.rows.names, Seed: q.seed, PeerTimeout: q.peerTimeout,
		Rails:    rendezvous.Rails{Network: q.rails.Network, Mode: q.rails.Mode, BlockBytes: q.rails.BlockBytes, Values: w.scheme.Slots()},
		JoinTime: spawnTime, Log: a.log, Notes: a.err,
	}
	if q.rendezvous != "" {
		switch {
		case q.inProcess:
			return p, usage("--in-process and --rendezvous: the peers are here or elsewhere, not both")
		case q.secretFile == "":
			return p, usage("--rendezvous needs --secret-file FILE, the same on every host")
		case q.trace != "":
			return p, usage("--trace with --rendezvous: give --trace to each obstacle peer")
		}
		var err error
		p.Address, p.JoinTime = q.rendezvous, q.joinTimeout
		p.Identity, err = a.identity(q.secretFile)
		return p, badInput(err)
	}
	if q.trace != "" {
		if err := writable(traceName(q.trace, 0)); err != nil {
			return p, err
		}
	}
	adapters, err := a.adapters(q, w, &p)
	if err != nil {
		return p, err
	}
	if q.secretFile != "" {
		return p, usage("--secret-file is for --rendezvous: peers that solve starts get a secret of their own")
	}
	key := driver.NewKey()
	if p.Identity, err = a.keyIdentity(key); err != nil {
		return p, failed(err)
	}
	if q.inProcess {
		if w.problem.Steps() == 0 {
			p.Answer = host.Array(w.problem.Points())
		}
		p.Spawn = a.routines(q, p, adapters)
	} else {
		var shared *os.File
		if w.problem.Steps() == 0 {
			if p.Answer, shared, err = host.SharedArray(w.problem.Points()); err != nil {
				return p, failed(err)
			}
		}
		p.Spawn = a.processes(q, key, shared)
	}
	if p.Spawn == nil {
		return p, failed(errors.New("this program's own file cannot be found: try --in-process"))
	}
	return p, nil
}

// processes starts peers as processes of this program; nil when its file is not
// known. shared is the memory of the answer, nil: there is none.
func (a *app) processes(q *request, key driver.Key, shared *os.File) func(context.Context, int, string) (launch.Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return func(_ context.Context, rank int, rendezvous string) (launch.Child, error) {
		args := []string{"peer", "--rendezvous", rendezvous, "--seat", fmt.Sprint(rank), "--spawned",
			"--listen", "127.0.0.1", "--log-level", a.logLevel, "--log-format", a.logFormat}
		args = append(args, q.host.Args()...)
		if q.trace != "" {
			args = append(args, "--trace", traceName(q.trace, rank))
		}
		if shared == nil {
			return spawn.Start(exe, args, keyLine(key), a.err)
		}
		return spawn.Start(exe, append(args, "--answer", "3"), keyLine(key), a.err, shared)
	}
}

// routines starts peers as goroutines of this process. Each has a node and a
// socket of its own, as if it were elsewhere.
func (a *app) routines(q *request, p launch.Plan, adapters []rail.Host) func(context.Context, int, string) (launch.Child, error) {
	return func(ctx context.Context, rank int, rendezvous string) (launch.Child, error) {
		o := peer.Options{
			Rendezvous: rendezvous, Identity: p.Identity, Rank: rank, DialTime: spawnTime, WaitTime: spawnTime,
			Listen: "127.0.0.1", Rail: adapters[rank], Catalog: a.catalog, Log: a.log,
		}
		if p.Answer != nil {
			o.Answer = func(int) ([]float64, error) { return p.Answer, nil }
		}
		var t *tracefile.File
		if q.trace != "" {
			var err error
			if t, err = tracefile.Create(traceName(q.trace, rank)); err != nil {
				return nil, err
			}
			o.Tracer = t
		}
		return spawn.Go(ctx, func(ctx context.Context) error {
			err := peer.Run(ctx, o)
			if t != nil {
				err = errors.Join(err, t.Close())
			}
			return err
		}), nil
	}
}

func traceName(name string, rank int) string { return fmt.Sprintf("%s.%d", name, rank) }

// parallel is an executor for what the launcher computes itself, for a moment:
// every call of For starts its own goroutines.
type parallel int

// Threads is how many share the work.
func (p parallel) Threads() int { return int(p) }

// For implements problem.Executor.
func (p parallel) For(n int, f func(i int)) {
	pool := runner.NewPool(min(int(p), max(n, 1)))
	defer pool.Close()
	pool.For(n, f)
}

var _ problem.Executor = parallel(1)
