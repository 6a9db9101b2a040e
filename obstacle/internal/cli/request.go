package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/choice"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/spf13/pflag"
)

// request is a solve as flags describe it; solve and compare share it.
type request struct {
	n           string
	tol         float64
	peers       int
	threads     int
	inProcess   bool
	scheme      string
	method      methodFlags
	rails       rail.Run
	host        rail.Host
	clusters    int
	topology    string
	slowdown    []string
	maxSweeps   uint64
	maxTime     time.Duration
	peerTimeout time.Duration
	joinTimeout time.Duration
	seed        uint64
	initial     string
	order       string
	partition   string
	weights     []float64
	mtu         int
	protect     string
	rows        rowFlags
	params      []string
	stepMode    string
	balance     string
	trace       string
	rendezvous  string
	secretFile  string
	metrics     string
	live        *launch.Status // what --metrics shows; nil: there is no such flag
	status      string
	enclosing   enclosing

	catalog *catalog.Set
}

// renamed maps the former names of flags to their names.
func renamed(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "together":
		name = "sweeps-per-pass"
	case "late":
		name = "no-overlap"
	case "work":
		name = "inner-cycles"
	case "slow":
		name = "slowdown"
	case "reconfigure":
		name = "step-mode"
	}
	return pflag.NormalizedName(name)
}

// flags adds those that solve and compare have in common.
func (q *request) flags(f *pflag.FlagSet) {
	q.numericFlags(f)
	f.IntVar(&q.threads, "threads", 0, "threads per peer (0: chosen, see the output)")
	f.BoolVar(&q.inProcess, "in-process", false, "run the peers in this process, still over sockets")
	q.rails.Add(f, q.catalog.Links.Names())
	q.host.Add(f)
	f.IntVar(&q.clusters, "clusters", 0, "label the peers as this many clusters (0: found out)")
	f.StringVar(&q.topology, "topology", "", "file that says which hosts form a cluster")
	f.StringArrayVar(&q.slowdown, "slowdown", nil, "R:F makes peer R relax F times slower (repeatable)")
	f.DurationVar(&q.peerTimeout, "peer-timeout", defaultPeerTimeout, "a peer silent for so long is lost")
	f.StringVar(&q.initial, "initial", "", "starting iterate, a .npy array")
	f.StringVar(&q.protect, "protect", defaultProtect, "encrypt and authenticate what peers exchange: auto (between hosts), always or never")
	f.IntVar(&q.mtu, "mtu", 0, "largest IP packet in bytes, 1280 to 65535 (0: that of the interface)")
	f.StringVar(&q.stepMode, "step-mode", "step",
		"asynchronous sessions at the start of a time step: synchronous (step), or unchanged (never)")
	f.StringVar(&q.balance, "balance", "off", "on moves planes from slow peers to fast ones while they run (slabs, richardson)")
}

// numericFlags adds those that a simulated run has too.
func (q *request) numericFlags(f *pflag.FlagSet) {
	f.StringVar(&q.n, "n", "64", "interior grid points per axis: N, or NX,NY,NZ")
	f.Float64Var(&q.tol, "tol", 1e-6, "relative VI residual at which to stop")
	f.SetNormalizeFunc(renamed)
	q.method.add(f)
	f.Uint64Var(&q.maxSweeps, "max-sweeps", 0, "stop after this many sweeps (0: no bound)")
	f.DurationVar(&q.maxTime, "max-time", 0, "stop after this time, as 90s or 5m (0: no bound)")
	f.Uint64Var(&q.seed, "seed", 1, "seed of the micro-protocols' random numbers")
	f.StringVar(&q.order, "order", "jacobi", "order of a peer's sub-blocks: jacobi or in-turn")
	f.StringVar(&q.partition, "partition", "auto", "auto, slabs, boxes, or PX,PY,PZ parts per axis")
	f.Float64SliceVar(&q.weights, "weights", nil, "shares of the peers' slabs, W0,W1,…")
	q.rows.add(f, q.catalog)
	f.StringArrayVar(&q.params, "param", nil, "NAME=VALUE of a built-in problem (repeatable)")
}

// Defaults of what a simulated run has no flag for.
const (
	defaultPeerTimeout = 10 * time.Second
	defaultProtect     = "auto"
)

// work is a request that has been found good.
type work struct {
	spec      *file.Spec
	problem   *problem.Problem
	partition problem.Partition
	scheme    iterate.Scheme
	method    problem.MethodConfig
	order     problem.Order
	initial   []float64
	slow      map[int]float64
	peers     int
	threads   int
	label     launch.Label // tells the peers' clusters; nil: they find out
	balance   bool         // planes move
	balanced  string       // what the answer says of that
	chosen    string       // why so many peers and threads; empty: the user said so
}

// resolve turns flags into work; every error is bad input.
func (q *request) resolve(ref string) (*work, error) {
	if err := q.built(); err != nil {
		return nil, err
	}
	if err := q.bounds(); err != nil {
		return nil, err
	}
	if _, err := q.stepModes(); err != nil {
		return nil, err
	}
	// Labels of as many clusters as there will be, which decide whether hybrid is in lockstep.
	some, err := q.someClusters()
	if err != nil {
		return nil, err
	}
	w, err := q.numeric(ref, some, 1)
	if err != nil {
		return nil, err
	}
	if err := q.workers(w); err != nil {
		return nil, badInput(err)
	}
	if w.label, err = q.label(w.partition); err != nil {
		return nil, err
	}
	if q.scheme == "hybrid" && w.label == nil {
		return nil, errNoClusters
	}
	if err := q.fits(w, len(some)); err != nil {
		return nil, badInput(err)
	}
	if w.slow, err = slowdowns(q.slowdown, w.peers); err != nil {
		return nil, badInput(err)
	}
	if w.balance, w.balanced, err = q.balances(w); err != nil {
		return nil, err
	}
	if q.initial != "" {
		if w.initial, err = output.ReadInitial(q.initial, w.problem); err != nil {
			return nil, badInput(err)
		}
	}
	return w, nil
}

var errNoClusters = usage("--scheme hybrid: which peers form a cluster has to be said: give --clusters C or --topology FILE")

// numeric is the part of resolve that a simulated run has too: scheme, method and problem,
// whose grid is side times coarser than the flags say. clusters are the labels that hybrid
// needs, by rank.
func (q *request) numeric(ref string, clusters []string, side int) (*work, error) {
	w := &work{}
	var err error
	if w.scheme, err = choice.Scheme(q.scheme, clusters); err != nil {
		return nil, badInput(err)
	}
	if w.method, err = q.method.config(w.scheme); err != nil {
		return nil, err
	}
	if _, err = q.rows.optional(q.catalog); err != nil {
		return nil, badInput(err)
	}
	if w.order, err = choice.Order(q.order); err != nil {
		return nil, badInput(err)
	}
	if w.order != problem.Jacobi && w.method.Name != problem.Richardson {
		return nil, usage("--order %v with --method %s: an order of planes is for %s; the others have one of their own", w.order, w.method.Name, problem.Richardson)
	}
	if w.spec, err = file.Open(q.catalog.Problems, ref, q.params); err != nil {
		return nil, badInput(err)
	}
	points, err := numbers("n", q.n)
	if err != nil {
		return nil, badInput(err)
	}
	for a, n := range points {
		if n%side != 0 {
			return nil, usage("--n %s with --stand-in %d: %d points are no multiple of %d", q.n, side, n, side)
		}
		points[a] = n / side
	}
	if w.problem, err = w.spec.BuildValid(points); err != nil {
		return nil, badInput(err)
	}
	return w, nil
}

// built refuses what this release does not have, by name.
func (q *request) built() error {
	switch {
	case q.trace != "" && !isFolder(filepath.Dir(q.trace)):
		return usage("--trace %s: no folder %s", q.trace, filepath.Dir(q.trace))
	}
	if err := q.rails.Check(q.catalog.Links.Names()); err != nil {
		return badInput(err)
	}
	return badInput(q.host.Check(q.catalog.Links.Names()))
}

// leastTolerance is about the relative residual that rounding leaves on a grid of
// a few points; on large grids it is more (10⁻¹² at 256³), and a run that cannot
// reach its tolerance goes on until it is stopped.
const leastTolerance = 1e-13

// bounds looks at single numbers.
func (q *request) bounds() error {
	switch {
	case !(q.tol > 0) || math.IsInf(q.tol, 0) || q.tol >= 1:
		return usage("--tol %v: want a number above 0 and below 1", q.tol)
	case q.tol < leastTolerance:
		return usage("--tol %v: round-off of double precision is in the way below %g; give a larger one", q.tol, leastTolerance)
	case q.threads < 0 || q.threads > 4096:
		return usage("--threads %d: want 1 to 4096, or 0 for a good choice", q.threads)
	case q.maxTime < 0:
		return usage("--max-time %v: want a positive time", q.maxTime)
	case q.peerTimeout < 100*time.Millisecond || q.peerTimeout > 24*time.Hour:
		return usage("--peer-timeout %v: want 100ms to 24h", q.peerTimeout)
	case !protectWord(q.protect):
		return usage("--protect %q: want auto, always or never", q.protect)
	case q.mtu != 0 && (q.mtu < 1280 || q.mtu > 65535):
		return usage("--mtu %d: want 1280 to 65535 bytes, or 0 for that of the interface", q.mtu)
	}
	return nil
}

// together tells whether a peer alone would do several sweeps in one pass over memory,
// and no flag speaks of several peers.
func (q *request) together(w *work) bool {
	m := &w.method
	return m.Name == problem.Richardson && m.Together != 1 && w.scheme.Name() == iterate.Synchronous().Name() && w.order == problem.Jacobi &&
		q.clusters == 0 && q.topology == "" && len(q.slowdown) == 0 && q.rendezvous == "" && q.partition == "auto" && q.balance != "on"
}

// workers decides on peers, threads and who gets which part.
func (q *request) workers(w *work) (err error) {
	w.peers, w.threads = q.peers, q.threads
	if q.peers < 0 {
		return fmt.Errorf("--peers %d: want 1 or more, or 0 for a good choice", q.peers)
	}
	if q.peers == 0 || q.threads == 0 {
		peers, threads, why := defaultWorkers(w.method.Name, q.together(w), w.problem.Points(), runtime.GOMAXPROCS(0))
		switch {
		case q.peers == 0 && len(q.weights) > 0:
			w.peers = len(q.weights)
		case q.peers == 0:
			w.peers, w.chosen = min(peers, w.problem.N[w.problem.Dimension-1]), why
		}
		if q.threads == 0 {
			w.threads = 1
			if q.peers == 0 || w.method.Name == problem.SOR || w.method.Name == problem.Multigrid {
				w.threads = max(1, threads/max(1, q.peers))
			}
		}
	}
	w.partition, err = partitionOf(q.partition, w.problem, w.peers, q.weights)
	if err == nil && w.partition.Peers() != w.peers {
		if q.peers != 0 {
			return fmt.Errorf("--partition %s makes %d parts for --peers %d", q.partition, w.partition.Peers(), q.peers)
		}
		w.peers = w.partition.Peers()
	}
	return err
}

// numbers reads N or NX,NY,NZ.
func numbers(flag, s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("--%s %q: want whole numbers, as 64 or 64,48,32", flag, s)
		}
		out = append(out, v)
	}
	return out, nil
}

// slowdowns reads R:F.
func slowdowns(flags []string, peers int) (map[int]float64, error) {
	out := map[int]float64{}
	for _, s := range flags {
		rank, factor, found := strings.Cut(s, ":")
		r, err1 := strconv.Atoi(rank)
		f, err2 := strconv.ParseFloat(factor, 64)
		if !found || err1 != nil || err2 != nil || !(f >= 1) || f > 1e6 {
			return nil, fmt.Errorf("--slowdown %q: want R:F, peer R relaxes F times slower, 1 ≤ F ≤ 1e6", s)
		}
		if r < 0 || r >= peers {
			return nil, fmt.Errorf("--slowdown %q: the peers of this run are 0 to %d", s, peers-1)
		}
		if _, twice := out[r]; twice {
			return nil, fmt.Errorf("--slowdown: peer %d is given twice", r)
		}
		out[r] = f
	}
	return out, nil
}

// floats reads X,Y,….
func floats(s string) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func isFolder(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.IsDir()
}

// protectWord tells whether a word is one of --protect.
func protectWord(s string) bool {
	_, err := p2psap.ParseProtection(s)
	return err == nil
}
