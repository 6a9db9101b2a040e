package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/spawn"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// spawnTime bounds the time in which a started peer must join.
const spawnTime = 60 * time.Second

// defaultKeepers is the number of keepers of a run whose peers are started by hand.
const defaultKeepers = 3

// plan returns the plan of a run and how its peers are started.
func (a *app) plan(ctx context.Context, q *request, w *work) (launch.Plan, error) {
	if err := q.trace.checkRanks(w.partition.Peers()); err != nil {
		return launch.Plan{}, err
	}
	spec := q.Spec
	spec.Partition, spec.After, spec.Method, spec.Order = w.partition, w.after, w.method, w.order
	spec.Balance, spec.BalanceParts = w.balance == "on" && q.Parts <= 1, w.balance == "on" && q.Parts > 1
	spec.Threads, spec.Pin, spec.Slowdown, spec.Reconfigure = w.threads, q.pin != "off", w.slow, q.stepMode != "never"
	spec.PartitionWhy, spec.MethodWhy = w.partitionWhy, w.methodWhy
	spec.Rails.Values, spec.Keepers = w.scheme.Slots(), 0
	p := launch.Plan{
		Catalog: a.catalog, Spec: spec, ProblemSpec: w.spec, Problem: w.problem, Initial: w.initial, Earlier: q.earlierState(),
		Label:    w.label,
		JoinTime: spawnTime, Log: a.log, Notes: a.err, Checkpoint: q.saver.record(),
	}
	if q.hostList != nil {
		return p, a.remote(q, &p)
	}
	if q.rendezvous != "" {
		switch {
		case q.inProcess:
			return p, usage("--in-process and --rendezvous exclude each other")
		case q.task == nil && checkAddress("--rendezvous", q.rendezvous) != nil:
			return p, checkAddress("--rendezvous", q.rendezvous)
		case q.secretFile == "" && q.task == nil:
			return p, usage("--rendezvous needs --secret-file FILE, the same on every host; obstacle secret FILE makes one")
		case q.trace.file != "" && q.task == nil:
			return p, usage("--trace with --rendezvous: give --trace to each obstacle peer")
		}
		var err error
		p.Address, p.JoinTime = q.rendezvous, q.joinTimeout
		if p.Keepers = q.Keepers; p.Keepers == 0 {
			p.Keepers = defaultKeepers
		}
		if q.task != nil {
			return p, a.lead(ctx, q, &p)
		}
		p.Identity, err = a.identity(ctx, q.secretFile)
		return p, badInput(err)
	}
	if q.trace.file != "" {
		if err := checkWritable(traceName(q.trace.file, 0)); err != nil {
			return p, err
		}
	}
	loopback, err := driver.Loopback()
	if err != nil {
		return p, failed(err)
	}
	p.Address = net.JoinHostPort(loopback, "0")
	adapters, err := a.adapters(q, w, &p)
	if err != nil {
		return p, err
	}
	if q.secretFile != "" {
		return p, usage("--secret-file is for --rendezvous: peers that solve starts use a secret of their own")
	}
	key := driver.NewKey()
	if p.Identity, err = a.keyIdentity(key); err != nil {
		return p, failed(err)
	}
	if q.inProcess {
		if w.problem.Steps() == 0 {
			p.Answer = host.Array(w.problem.Points())
		}
		p.Spawn = a.routines(q, p, adapters, loopback)
	} else {
		var shared *os.File
		if w.problem.Steps() == 0 {
			if p.Answer, shared, err = host.SharedArray(w.problem.Points()); err != nil {
				return p, failed(err)
			}
		}
		p.Spawn = a.processes(q, key, shared, loopback)
	}
	if p.Spawn == nil {
		return p, failed(errors.New("cannot find the executable of this program: try --in-process"))
	}
	return p, nil
}

// starter starts the peer of a rank, which joins at the address rendezvous.
type starter = func(ctx context.Context, rank int, rendezvous string) (launch.Child, error)

// peerArgs returns the arguments of a peer that this process starts, which reads the key of the run from its standard
// input.
func (a *app) peerArgs(q *request, rendezvous string, seat int) []string {
	args := []string{"peer", "--rendezvous", rendezvous, "--seat", strconv.Itoa(seat), "--spawned", "--log-level",
		a.logLevel, "--log-format", a.logFormat, "--color", a.childColour()}
	return append(args, q.host.Args()...)
}

// processes returns a starter of processes of this program, nil if its executable is unknown. shared is the memory of
// the answer, nil if there is none.
func (a *app) processes(q *request, key driver.Key, shared *os.File, listen string) starter {
	if _, err := spawn.Executable(); err != nil {
		return nil
	}
	started := map[int]int{}
	return func(_ context.Context, rank int, rendezvous string) (launch.Child, error) {
		args := append(a.peerArgs(q, rendezvous, rank), "--listen", listen)
		if q.trace.file != "" {
			name := traceName(q.trace.file, rank)
			if n := started[rank]; n > 0 {
				name = traceName(name, n) // of the process that replaces a lost one
			}
			started[rank]++
			args = append(args, q.trace.args(name)...)
		}
		var files []*os.File
		if shared != nil {
			args, files = append(args, "--answer", "3"), []*os.File{shared}
		}
		exe, err := spawn.Executable()
		if err != nil {
			return nil, err
		}
		p, err := a.startChild(exe, args, keyLine(key), files...)
		if err != nil {
			return nil, err
		}
		if q.trace.file != "" {
			q.trace.children.add(p)
		}
		return p, nil
	}
}

// routines returns a starter of goroutines. Each peer has its own node and sockets, as if it had its own process.
func (a *app) routines(q *request, p launch.Plan, adapters []rail.Host, listen string) starter {
	return func(ctx context.Context, rank int, rendezvous string) (launch.Child, error) {
		o := peer.Options{
			Rendezvous: rendezvous, Identity: p.Identity, Rank: rank, DialTime: spawnTime, WaitTime: spawnTime,
			Listen: listen, Rail: adapters[rank], Catalog: a.catalog, Log: a.log,
		}
		if p.Answer != nil {
			o.Answer = func(int) ([]float64, error) { return p.Answer, nil }
		}
		return spawn.Go(ctx, func(ctx context.Context) error {
			var ran error
			err := q.trace.recorded(traceName(q.trace.file, rank), &o, a.log, func() error {
				ran = peer.Run(ctx, o)
				return ran
			})
			if err != nil && ran == nil {
				a.log.Warn().Err(err).Int("rank", rank).Msg("the trace was not written")
			}
			return err
		}), nil
	}
}

func traceName(name string, rank int) string { return fmt.Sprintf("%s.%d", name, rank) }

// parallel is an executor for computations of the launcher, with a thread for each processor. Every call of For starts
// its own goroutines.
type parallel struct{}

// Threads implements problem.Executor.
func (parallel) Threads() int { return runtime.GOMAXPROCS(0) }

// For implements problem.Executor.
func (p parallel) For(n int, f func(i int)) {
	pool := runner.NewPool(min(p.Threads(), max(n, 1)))
	defer pool.Close()
	pool.For(n, f)
}
