package cli

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// request holds the flags that describe a run.
type request struct {
	rendezvous.Spec // those of its fields that flags hold; work has the others
	n               string
	peers           int
	threads         int
	inProcess       bool
	method          methodFlags
	host            rail.Host
	clusters        int
	topology        string
	slowdown        []string
	pin             string
	joinTimeout     time.Duration
	initial         string
	order           string
	partition       string
	weights         []float64
	params          []string
	stepMode        string
	balance         string
	trace           traceFlags
	rendezvous      string
	secretFile      string
	pages           *pages    // that show the run; nil for none
	label           string    // of the run on a terminal and on the page; empty: chosen there
	observed        *observed // the run in progress; nil without pages
	status          string
	page            *pageFlags // of status
	outputHost      string     // that writes the outputs of a lost process; empty: this one was not lost
	enclosing       enclosureFlags
	from            *checkpoint.Found // the checkpoint that the run continues; nil for none
	saver           *saver            // writes checkpoints; nil for none

	taskFlags
	watch func(launch.Progress) // follows the run; nil for none

	catalog *catalog.Set
}

// newNames are the names of flags by their former names.
var newNames = map[string]string{
	"together": "sweeps-per-pass", "late": "no-overlap", "work": "inner-cycles", "slow": "slowdown",
	"reconfigure": "step-mode",
}

// renamed maps the former names of flags to their names.
func renamed(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(cmp.Or(newNames[name], name))
}

// flags adds the flags that solve, compare and convergence share.
func (q *request) flags(f *pflag.FlagSet) {
	q.numericFlags(f)
	f.IntVar(&q.threads, "threads", 0, "threads per peer (0: chosen, see the output)")
	f.StringVar(&q.pin, "pin", "auto",
		"auto: bind every peer to processors of its own if the host has enough; off: leave that to the system")
	f.BoolVar(&q.inProcess, "in-process", false, "run the peers in this process, which still communicate over sockets")
	(*rail.Run)(&q.Rails).Add(f, q.catalog.Links.Names())
	q.host.Add(f)
	f.IntVar(&q.clusters, "clusters", 0, "number of clusters that the peers form (0: measured)")
	f.StringVar(&q.topology, "topology", "", "file that assigns hosts to clusters")
	f.StringArrayVar(&q.slowdown, "slowdown", nil, "R:F: peer R relaxes F times slower; repeatable")
	f.DurationVar(&q.PeerTimeout, "peer-timeout", defaultPeerTimeout, "a peer that is silent for longer is lost")
	q.recoveryFlags(f)
	f.StringVar(&q.initial, "initial", "", "starting iterate, a .npy array")
	f.StringVar(&q.Protect, "protect", defaultProtect,
		"encrypt and authenticate messages between peers: auto (between hosts), always or never")
	f.IntVar(&q.MTU, "mtu", 0, "largest IP packet in bytes, 1280 to 65535 (0: that of the interface)")
	f.StringVar(&q.balance, "balance", "off",
		"on: move planes from slow peers to fast ones during the run (slabs, richardson), or whole parts with --parts")
	f.IntVar(&q.Parts, "parts", 1, "number of parts of the grid that each peer relaxes, one after the other; they can move")
}

// recoveryFlags adds the flags that say what happens when a peer is lost.
func (q *request) recoveryFlags(f *pflag.FlagSet) {
	f.StringVar(&q.Recover, "recover", rendezvous.RecoverLocal,
		"when a peer is lost: local: solve its block again from the values around it and go on; "+
			"exact: go back to an iterate of which every peer keeps a copy with another one, with the bits and sweeps of "+
			"the undisturbed run; off: end the run")
	f.IntVar(&q.Spares, "spares", 0, "number of further processes that wait to take the place of lost peers")
	f.DurationVar(&q.Suspect, "suspect", defaultSuspect,
		"with --recover: replace a peer on another host, or a stopped process, after this silence")
}

// numericFlags adds the flags that simulated runs have, too.
func (q *request) numericFlags(f *pflag.FlagSet) {
	f.StringVar(&q.n, "n", "64", "interior grid points per axis: N, or NX,NY,NZ")
	f.Float64Var(&q.Tolerance, "tol", 1e-6, "relative residual of the variational inequality at which to stop")
	f.SetNormalizeFunc(renamed)
	q.method.add(f, q.catalog)
	f.Uint64Var(&q.MaxSweeps, "max-sweeps", 0, "stop after this number of sweeps (0: no bound)")
	f.DurationVar(&q.MaxTime, "max-time", 0, "stop after this time, such as 90s or 5m (0: no bound)")
	f.Uint64Var(&q.Seed, "seed", 1, "seed of the random numbers of micro-protocols")
	f.StringVar(&q.order, "order", "jacobi", "order of the sub-blocks of a peer: jacobi or in-turn")
	f.StringVar(&q.partition, "partition", "auto", "auto, slabs, boxes, or PX,PY,PZ parts per axis")
	f.Float64SliceVar(&q.weights, "weights", nil, "relative sizes of the peers' slabs, W0,W1,…")
	f.StringVar(&q.stepMode, "step-mode", "step",
		"asynchronous sessions at the start of a time step: synchronous (step), or unchanged (never)")
	rowFlags(f, &q.Spec, q.catalog)
	f.StringArrayVar(&q.params, "param", nil, "NAME=VALUE: parameter of a built-in problem; repeatable")
}

// Defaults of flags that simulated runs do not have.
const (
	defaultPeerTimeout = 10 * time.Second
	defaultProtect     = "auto"
	defaultSuspect     = time.Second
)

// work is a validated request.
type work struct {
	spec          *file.Spec
	problem       *problem.Problem
	partition     problem.Partition
	scheme        iterate.Scheme
	method        problem.MethodConfig
	methodWhy     string        // why it is the method
	choice        solver.Choice // zero if the program did not choose the method
	alternatives  report.Alternatives
	rows          []p2psap.OptionalRow
	order         problem.Order
	initial       []float64
	best          []float64 // the answer of the run that this one continues, if initial is another iterate
	after         int       // complete time steps
	slow          map[int]float64
	peers         int
	threads       int
	label         launch.Label // declares the peers' clusters; nil: they are measured
	balance       string       // "on" if planes move, "off", or "off: " and the reason
	partitionWhy  string       // why it is the partition
	chosenBecause string       // why the program chose these numbers of peers and threads
}

// resolve validates the flags and returns the work. Its errors are bad input.
func (q *request) resolve(ref string) (*work, error) {
	if err := q.checkNetworks(); err != nil {
		return nil, err
	}
	if err := q.checkBounds(); err != nil {
		return nil, err
	}
	if err := q.checkParts(); err != nil {
		return nil, err
	}
	// The number of clusters decides whether hybrid is in lockstep.
	some, err := q.possibleClusters()
	if err != nil {
		return nil, err
	}
	w, err := q.numeric(ref, some, 1)
	if err != nil {
		return nil, err
	}
	if err := q.choose(w, some); err != nil {
		return nil, err
	}
	if err := q.catalog.Methods.Check(q.config(w)); err != nil {
		return nil, badInput(err)
	}
	if w.slow, err = slowdowns(q.slowdown, w.peers); err != nil {
		return nil, badInput(err)
	}
	if w.balance = q.balance; q.balance == "on" && q.Parts <= 1 {
		c := q.config(w)
		if err := richardson.Balanceable(&c); err != nil { // no refusal, since compare also has rows of one peer
			w.balance = "off: " + strings.TrimPrefix(err.Error(), richardson.ErrBalance.Error()+": ")
		}
	}
	if q.from != nil {
		w.initial, w.best, w.after = q.from.U, q.from.Best, q.from.Step
	}
	if q.initial != "" {
		if w.initial, err = output.ReadInitial(q.initial, w.problem); err != nil {
			return nil, badInput(err)
		}
	}
	return w, nil
}

var errNoClusters = usage("--scheme hybrid needs declared clusters: give --clusters C or --topology FILE")

// numeric is the part of resolve for simulated runs, too. It validates the scheme, the method and the problem, whose
// grid is coarser than --n by the factor side. clusters are the labels of the peers, by rank, for hybrid.
func (q *request) numeric(ref string, clusters []string, side int) (*work, error) {
	w := &work{}
	var err error
	if w.scheme, err = q.catalog.Scheme(q.Scheme, clusters); err != nil {
		return nil, badInput(err)
	}
	if _, err = q.method.config(w.scheme, q.catalog); err != nil {
		return nil, err
	}
	if w.rows, err = q.catalog.Optional(q.Congestion, q.Rows); err != nil {
		return nil, badInput(err)
	}
	if err := checkWord("order", q.order); err != nil {
		return nil, err
	}
	if q.order == problem.InTurn.String() {
		w.order = problem.InTurn
	}
	if w.spec, w.problem, err = q.build(ref, side); err != nil {
		return nil, err
	}
	return w, q.chooseMethod(w, clusters)
}

// build returns the problem, whose grid is coarser than --n by the factor side.
func (q *request) build(ref string, side int) (*file.Spec, *problem.Problem, error) {
	if q.from != nil {
		p, err := q.from.Problem()
		return q.from.Spec, p, badInput(err)
	}
	if err := checkProblemFile(ref); err != nil {
		return nil, nil, err
	}
	spec, err := file.Open(q.catalog.Problems, ref, q.params)
	if err != nil {
		return nil, nil, badInput(err)
	}
	if spec.Iteration() {
		return q.buildIteration(spec, side)
	}
	points, err := numbers("n", q.n)
	if err != nil {
		return nil, nil, badInput(err)
	}
	full := slices.Clone(points)
	for a, n := range full {
		if n%side != 0 {
			return nil, nil, usage("--n %s with --stand-in %d: %d points are no multiple of %d", q.n, side, n, side)
		}
		if side > 1 && n/side < leastStandIn {
			return nil, nil, usage("--n %s with --stand-in %d leaves %s along an axis, too few to stand in: give --stand-in %d",
				q.n, side, counted(n/side, "point"), largestStandIn(full, side))
		}
		points[a] = n / side
	}
	p, err := spec.BuildValid(points)
	return spec, p, badInput(err)
}

// checkNetworks validates --trace and the flags of networks.
func (q *request) checkNetworks() error {
	if err := q.trace.check(); err != nil {
		return err
	}
	if err := (*rail.Run)(&q.Rails).Check(q.catalog.Links.Names()); err != nil {
		return badInput(err)
	}
	if q.Rails.Network == rail.Memory && q.overHosts() {
		return usage("--network %s joins the peers of one process, and others join this run: leave one of both out",
			rail.Memory)
	}
	return badInput(q.host.Check(q.catalog.Links.Names()))
}

// leastTolerance is about the relative residual that rounding errors leave on a grid of a few points. On large grids
// it is higher, 10⁻¹² at 256³.
const leastTolerance = 1e-13

// checkBounds validates single values.
func (q *request) checkBounds() error {
	if err := checkWords("recover", q.Recover, "step-mode", q.stepMode, "pin", q.pin, "balance", q.balance,
		"protect", q.Protect); err != nil {
		return err
	}
	switch {
	case !(q.Tolerance > 0) || math.IsInf(q.Tolerance, 0) || q.Tolerance >= 1:
		return usage("--tol %v: want a number above 0 and below 1", q.Tolerance)
	case q.Tolerance < leastTolerance:
		return usage("--tol %v: rounding errors prevent a residual below %g; give a larger tolerance", q.Tolerance,
			leastTolerance)
	case q.threads < 0 || q.threads > 4096:
		return usage("--threads %d: want 1 to 4096, or 0 to have it chosen", q.threads)
	case q.MaxTime < 0:
		return usage("--max-time %v: want a positive time", q.MaxTime)
	case q.PeerTimeout < 100*time.Millisecond || q.PeerTimeout > 24*time.Hour:
		return usage("--peer-timeout %v: want 100ms to 24h", q.PeerTimeout)
	case q.Recover == rendezvous.RecoverExact && q.balance == "on" && q.Parts <= 1:
		return usage("--recover exact: no iterates are kept while planes move; leave out --balance on, or give --parts")
	case q.Recover != "" && (q.Suspect < 100*time.Millisecond || q.Suspect > 24*time.Hour):
		return usage("--suspect %v: want 100ms to 24h", q.Suspect)
	case q.Spares < 0 || q.Spares > launch.MaxSpares:
		return usage("--spares %d: want 0 to %d", q.Spares, launch.MaxSpares)
	case q.Spares > 0 && q.Recover == rendezvous.RecoverOff:
		return usage("--spares %d: no spare peer takes a place with --recover off", q.Spares)
	case q.Spares > 0 && q.inProcess:
		return usage("--spares %d with --in-process: spare peers are processes; leave out --in-process", q.Spares)
	case q.Spares > 0 && q.rendezvous != "":
		return usage("--spares %d: with --rendezvous start more peers than --peers by hand", q.Spares)
	case !slices.Contains([]int{0, 1, 3, 5}, q.Keepers):
		return usage("--keepers %d: want 1, 3 or 5, or 0 to have it chosen", q.Keepers)
	case q.Keepers > 1 && q.Recover == rendezvous.RecoverOff:
		return usage("--keepers %d: the run cannot survive a loss with --recover off", q.Keepers)
	case q.Keepers > 1 && !q.takesPeers():
		return usage("--keepers %d needs --rendezvous: peers that solve starts end with it", q.Keepers)
	case q.MTU != 0 && (q.MTU < 1280 || q.MTU > 65535):
		return usage("--mtu %d: want 1280 to 65535 bytes, or 0 for that of the interface", q.MTU)
	}
	return nil
}

// checkParts validates the flags about parts that move.
func (q *request) checkParts() error {
	switch off := q.Recover == rendezvous.RecoverOff; {
	case q.Parts < 1:
		return usage("--parts %d: want 1 or more", q.Parts)
	case q.Parts > 1 && q.inProcess:
		return usage("--parts with --in-process: parts move between processes")
	case q.Parts > 1 && q.balance == "on" && off:
		return usage("--balance on with --parts and --recover off: parts move as after a loss, so leave out --recover off")
	case q.Elastic && off:
		return usage("--elastic with --recover off: parts move as after a loss, so leave out --recover off")
	case q.Elastic && !q.takesPeers():
		return usage("--elastic needs --rendezvous: no other peer can join peers that solve starts")
	}
	return nil
}

// sweepsInOnePass reports whether a single peer would do several sweeps in one pass over memory and no flag implies
// several peers.
func (q *request) sweepsInOnePass(w *work) bool {
	m := &w.method
	several := q.clusters != 0 || q.topology != "" || len(q.slowdown) > 0 || q.overHosts() ||
		q.partition != "auto" || q.balance == "on" || q.Parts > 1
	return m.Name == problem.Richardson && m.SweepsPerPass != 1 && w.scheme.Name() == iterate.Synchronous().Name() &&
		w.order == problem.Jacobi && !several
}

// config returns the configuration of the peers.
func (q *request) config(w *work) problem.Config {
	c := problem.Config{
		Problem: w.problem, Partition: w.partition, Scheme: w.scheme, Order: w.order, Method: w.method,
		Tolerance: q.Tolerance, MaxSweeps: iterate.Iteration(q.MaxSweeps),
	}
	if q.Recover == rendezvous.RecoverExact && w.problem.Steps() == 0 {
		c.KeepEvery = buddy.KeepEvery(0) // for Check; the launcher sets it by the longest block
	}
	return c
}

// choose sets peers, threads, the partition and clusters for the method that numeric has set. If the program chose the
// method and it refuses the peers, the method is chosen again, for them.
func (q *request) choose(w *work, clusters []string) (err error) {
	for range 2 {
		before := w.method.Name
		if err := q.chooseWorkers(w); err != nil {
			return badInput(err)
		}
		if w.label, err = q.clusterLabels(w.partition); err != nil {
			return err
		}
		if q.Scheme == "hybrid" && w.label == nil {
			return errNoClusters
		}
		if w.scheme, err = q.schemeAmong(w.partition, len(clusters)); err != nil {
			return badInput(err)
		}
		if err := q.chooseMethod(w, clusters); err != nil || w.method.Name == before {
			return err
		}
	}
	return nil
}

// chooseWorkers sets the numbers of peers and threads and the partition.
func (q *request) chooseWorkers(w *work) (err error) {
	w.peers, w.threads = q.peers, q.threads
	parts := max(q.Parts, 1)
	if q.peers < 0 {
		return fmt.Errorf("--peers %d: want 1 or more, or 0 to have it chosen", q.peers)
	}
	if q.peers == 0 || q.threads == 0 {
		points, cpus := w.problem.Points(), runtime.GOMAXPROCS(0)
		peers, threads, why := defaultWorkers(w.method.Name, q.sweepsInOnePass(w), points, cpus)
		switch {
		case q.peers == 0 && len(q.weights) > 0:
			w.peers = len(q.weights)
		case q.peers == 0:
			if peers < q.clusters {
				peers, why = q.clusters, fmt.Sprintf("one peer for each of %d clusters", q.clusters)
			}
			w.peers, w.chosenBecause = min(peers, w.problem.N[w.problem.Dimension-1]), why
		}
		if q.threads == 0 {
			w.threads = 1
			if q.peers == 0 || w.method.Name == problem.SOR || w.method.Name == problem.Multigrid {
				w.threads = max(1, threads/max(1, q.peers))
			}
		}
	}
	w.partition, w.partitionWhy, err = partitionOf(q.partition, w.problem, w.peers*parts, q.weights)
	if err == nil && w.partition.Peers() != w.peers*parts {
		switch {
		case parts > 1:
			return fmt.Errorf("--partition %s makes %d parts for %d peers with --parts %d", q.partition,
				w.partition.Peers(), w.peers, parts)
		case q.peers != 0:
			return fmt.Errorf("--partition %s makes %d parts for --peers %d", q.partition, w.partition.Peers(), q.peers)
		}
		w.peers = w.partition.Peers()
	}
	return err
}

func numbers(flag, s string) ([]int, error) {
	out, err := values(s, strconv.Atoi)
	if err != nil {
		err = fmt.Errorf("--%s %q: want whole numbers, such as 64 or 64,48,32", flag, s)
	}
	return out, err
}

func values[T any](s string, parse func(string) (T, error)) (out []T, err error) {
	for part := range strings.SplitSeq(s, ",") {
		v, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

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

func isDirectory(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.IsDir()
}
