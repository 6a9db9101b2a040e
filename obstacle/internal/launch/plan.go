// Package launch runs a solve from the process that the user started: it lets
// the peers join, hands out the work, watches over them, and assembles their
// blocks. No halo passes through it, and it relaxes nothing but the blocks of
// lost peers.
package launch

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/choice"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/rs/zerolog"
)

// Plan is a run as the user asked for it.
type Plan struct {
	Spec      *file.Spec
	Problem   *problem.Problem // Spec on its grid, validated
	Partition problem.Partition
	Initial   []float64 // starting iterate [z][y][x]; nil: the problem's

	Scheme      string
	Method      problem.MethodConfig
	Order       string
	Tolerance   float64
	MaxSweeps   uint64        // 0: no bound
	MaxTime     time.Duration // from the first relaxation; 0: no bound
	Threads     int           // of each peer
	Balance     bool          // planes move between the peers
	Reconfigure bool          // sessions change their mode at boundaries of time steps
	Slow        map[int]float64
	Label       Label            // declares the peers' clusters; nil: they find out
	MTU         int              // 0: that of the interface
	Protect     string           // which sessions are protected: auto, always or never
	Congestion  string           // the word of --congestion; "": newreno
	Rows        []string         // of --rows
	Rails       rendezvous.Rails // network, mode and block size; the rest is filled in
	Seed        uint64
	PeerTimeout time.Duration // a peer silent for so long is lost

	Identity rendezvous.Identity
	// Address is where peers started by hand join; empty: the launcher starts
	// them, on this host.
	Address  string
	JoinTime time.Duration // until every peer must have joined

	// Spawn starts the peers of a run on this host; rendezvous is the address to
	// join. Nil when Address is set.
	Spawn func(ctx context.Context, rank int, rendezvous string) (Child, error)

	// Answer is memory for the whole iterate, into which peers that Spawn starts write their
	// blocks; nil: they send them.
	Answer []float64

	// Steps is told u(0) and the end of every time step, one after the other, from
	// goroutines of the run; u is only valid during the call. May be nil.
	Steps func(m int, t float64, u []float64)

	Interrupt <-chan struct{} // closed: end with the best iterate
	Status    *Status         // kept up to date; nil: nobody wants to know
	Watch     func(Progress)  // called often, from one goroutine; may be nil
	Log       zerolog.Logger
	Notes     io.Writer // where a person is told what to do next (how to join by hand)
}

// RailsOf are those of the run for a peer, as large as its messages need.
func (p *Plan) RailsOf(rank int) rendezvous.Rails {
	out := p.Rails
	// Which peers form a cluster is found out later; whether they are one or several decides
	// how large a coarse correction is, and so how long messages are.
	several := make([]string, p.Partition.Peers()) // no label: a cluster of one's own
	for _, labels := range [][]string{slices.Repeat([]string{"0"}, len(several)), several} {
		scheme, err := choice.Scheme(p.Scheme, labels)
		if err != nil {
			return out
		}
		c := problem.Config{Problem: p.Problem, Partition: p.Partition, Scheme: scheme, Method: p.Method}
		for q := range p.Partition.Peers() {
			all := solver.Links(&c, iterate.Rank(q))
			if q == rank {
				out.Neighbours = len(all)
			}
			for _, n := range all {
				out.MessageBytes = max(out.MessageBytes, n.MessageBytes())
				out.Values = max(out.Values, len(n.Sent))
			}
		}
	}
	return out
}

// Label tells the label of the cluster of a peer that joins, from its rank, the name
// of its host and the host's addresses; an error sends the peer away.
type Label func(rank int, host string, addresses []netip.Addr) (string, error)

// Child is a peer that the launcher started.
type Child interface {
	// Wait returns when the peer has ended, with what is known of why.
	Wait() error
	// Kill ends it at once.
	Kill()
	// Name tells people which it is: "pid 4711".
	Name() string
}

// Progress is how far a run is.
type Progress struct {
	Elapsed  time.Duration // since the first relaxation
	Step     int           // time step in progress; 0: the problem is stationary
	Sweep    uint64        // of rank 0
	Residual float64       // relative; NaN: not known yet
}

// Reasons for the end of a run.
const (
	Converged   = "converged"
	Sweeps      = "sweeps"
	Time        = "time"
	Interrupted = "interrupted"
	Stagnated   = "stagnated" // rounding keeps the residual above the tolerance
	Failed      = "failed"
)

// Outcome is what a run has come to.
type Outcome struct {
	// U is the assembled iterate [z][y][x]. The box of a peer in Missing holds what Filled
	// says, or starting values.
	U       []float64
	Missing []int
	Filled  []Filled
	Reason  string
	AtStart bool   // U is where the run began: the iterate at an early end had a larger residual
	Failure string // when Reason is Failed: what happened, in one sentence

	// Of a nonstationary run, whose U is the end of the last complete step (u(0) if
	// there is none).
	Steps    int    // complete
	StepList []Step // all of them, or every so many where they are many
	Worst    Pair   // that with the largest residual
	Last     Pair

	Peers  []rendezvous.Result // by rank; of a lost peer only Points is set
	Boxes  []problem.Box       // by rank, at the end: planes may have moved
	Hosts  []rendezvous.Member
	Setup  time.Duration // from the call of Run to the first relaxation
	Run    time.Duration // from the first relaxation to the last peer's verdict, as the launcher saw it
	Gather time.Duration // until every block had come

	Strangers int64 // came to the rendezvous and were sent away
}

// Filled is a hole of the answer, left by lost peers, that the launcher has filled with the
// solution of the problem on it, for the values that the other peers have around it.
type Filled struct {
	Box      problem.Box // smallest that holds the hole
	Points   int         // of the hole
	Method   string
	Cycles   uint64  // of the method
	Residual float64 // relative, of the problem on the hole
	Seconds  float64
}

// StopTime bounds how long peers may take to end after they were asked to,
// beyond PeerTimeout.
const StopTime = 5 * time.Second

// BeatEvery is how often a peer tells the launcher that it lives.
func BeatEvery(timeout time.Duration) time.Duration {
	return min(max(timeout/8, 20*time.Millisecond), 100*time.Millisecond)
}
