// Package launch controls a run from the process that the user started, the launcher: peers join, it assigns the work,
// monitors them and assembles their blocks. Halos do not pass through it, and it relaxes only the blocks of lost peers.
package launch

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Plan describes a run.
type Plan struct {
	Catalog *catalog.Set
	// Spec describes the run. Run sets the fields that other fields of the plan decide: those of the problem, FromFile,
	// Reports and KeepEvery.
	rendezvous.Spec
	ProblemSpec *file.Spec
	Problem     *problem.Problem // ProblemSpec on its grid, validated
	Initial     []float64        // starting iterate [z][y][x], or u at the end of time step After; nil: that of the problem
	Earlier     []byte           // Result.State of the run that ended with Initial; nil: there is none
	Label       Label            // declares the peers' clusters; nil: they are measured

	Identity rendezvous.Identity
	// Address is the rendezvous. If it is empty, it is on loopback, and Spawn is set.
	Address  string
	JoinTime time.Duration // bounds the time until every peer has joined

	// Spawn starts a peer, which joins at the address rendezvous. If it is nil, the peers are started by hand.
	Spawn func(ctx context.Context, rank int, rendezvous string) (Child, error)

	// Listening is called with the address at which peers that are started by hand can join. It may be nil.
	Listening func(address string) error

	// Led is called by Lead with the answer in the form of Attach, instead of waiting for an obstacle attach. It may be
	// nil.
	Led func(run *rendezvous.Spec, problem []byte, o *Outcome) error

	// Answer is memory for the whole iterate. Peers that Spawn started write their blocks into it. If it is nil, they
	// send them.
	Answer []float64

	// Steps is called with the end of step After, which is u(0) for After = 0, and with that of every later time step,
	// one call at a time, from goroutines of the run. u is valid during the call. It may be nil.
	Steps func(m int, t float64, u []float64)

	Captures Captures // of a stationary run; may be nil

	// Checkpoint is for the process that leads the run if this one is lost.
	Checkpoint rendezvous.Checkpoint
	// Continue returns what writes the checkpoints of a run that this process leads from a term on, nil if it cannot. It
	// may be nil.
	Continue func(p *Plan, term int) Saver

	Samples Samples // may be nil

	Interrupt <-chan struct{} // closed to end with the best iterate
	Status    *Status         // updated during the run; may be nil
	Watch     func(Progress)  // called often, by one goroutine; may be nil
	Log       zerolog.Logger
	Notes     io.Writer // for instructions on how to join by hand

	AttachFlags string // of obstacle attach, for Notes and failures
}

// RailsOf returns the settings of the networks for a peer, with the sizes that its messages need.
func (p *Plan) RailsOf(rank int) rendezvous.Rails {
	out := p.Rails
	// Clusters may be measured later. Their number decides the size of a coarse correction and so of messages: take the
	// larger of one cluster and one per peer.
	several := make([]string, p.Partition.Peers()) // a peer without label is its own cluster
	asynchronous := false
	for _, labels := range [][]string{slices.Repeat([]string{"0"}, len(several)), several} {
		scheme, err := p.Catalog.Scheme(p.Scheme, labels)
		if err != nil {
			return out
		}
		asynchronous = asynchronous || scheme.Asynchronous()
		out.Synchronous = out.Synchronous || !scheme.Asynchronous()
		c := problem.Config{Problem: p.Problem, Partition: p.Partition, Scheme: scheme, Method: p.Method}
		for q := range p.Partition.Peers() {
			all := p.Catalog.Methods.Links(&c, iterate.Rank(q))
			if q == rank {
				out.Neighbours = len(all)
			}
			for _, n := range all {
				out.MessageBytes = max(out.MessageBytes, n.MessageBytes())
				out.Values = max(out.Values, len(n.Sent))
			}
		}
	}
	if !asynchronous {
		out.Values = 0
	}
	if p.Recover == rendezvous.RecoverExact {
		out.Neighbours += 2 // the buddy, and the peer whose buddy it is
	}
	return out
}

// Label returns the label of the cluster of a peer that joins, from its rank and the name and addresses of its host.
// An error refuses the peer.
type Label func(rank int, host string, addresses []netip.Addr) (string, error)

// Child is a peer that the launcher started.
type Child interface {
	// Wait returns when the peer has ended, with the reason if it failed.
	Wait() error
	// Kill ends the peer at once.
	Kill()
	// Stopped reports whether the process of the peer is stopped, as by SIGSTOP.
	Stopped() bool
	// Name identifies the peer to the user: "pid 4711".
	Name() string
}

// Progress is the state of a run.
type Progress struct {
	Elapsed  time.Duration // since the first relaxation
	Step     int           // time step in progress; 0 for a stationary problem
	Sweep    uint64        // of rank 0
	Residual float64       // relative; NaN while unknown
}

// Reasons for the end of a run.
const (
	Converged   = "converged"
	Sweeps      = "sweeps"
	Time        = "time"
	Interrupted = "interrupted"
	Stagnated   = "stagnated" // the residual has stopped falling above the tolerance
	Diverged    = "diverged"  // a residual was not finite
	Failed      = "failed"
	CutOff      = "cut off" // most keepers were out of reach, so that the run may go on elsewhere
)

// Outcome is the result of a run.
type Outcome struct {
	// U is the assembled iterate [z][y][x]. The box of a peer in Missing was filled as Filled describes, or holds
	// starting values.
	// It is nil if the run has failed before the end of a time step was known.
	U       []float64 `json:"-"`
	Missing []int
	Filled  []Filled
	Reason  string
	AtStart bool      // U is the starting iterate, since the last one had a larger residual
	Ended   []float64 `json:"-"` // the last iterate if AtStart, from which a later run continues
	// Rounding is the relative residual at which methods stagnate by rounding near U; 0: it is unknown. See verify.RoundingLevel.
	Rounding float64 `json:"-"`
	Failure  string  // description of the failure if Reason is Failed; of what to change if it is Diverged

	// The following fields are those of a nonstationary problem. U is then the end of the last complete step, or u(0).
	Steps int // complete, with those before the run
	// FirstStep is the first that StepList, Worst and Last can describe. Those before are of an earlier run, or ended
	// before the process that led the run was lost.
	FirstStep int
	StepList  []Step // all of them, or a selection of at most 1000
	Worst     Pair   // step with the largest residual
	Last      Pair

	Losses []*Loss             // from which the run went on
	Parts  int                 // of each process at the start
	Moves  []Moved             // parts that went to other processes
	Peers  []rendezvous.Result // by rank; for a lost peer only Points is set
	Gone   rendezvous.Traffic  // of processes that ran a part before, as far as they have reported it
	Boxes  []problem.Box       // by rank, at the end, after any moves of planes
	Hosts  []rendezvous.Member
	Setup  time.Duration // from the call of Run to the first relaxation
	Run    time.Duration // from the first relaxation to the last result
	Gather time.Duration // from the first relaxation until every block had arrived

	Refused int64 // connections that were refused

	// Checkpoint and Resumable are set if the process that led the run at its end was not its launcher.
	Checkpoint *Saved
	Resumable  bool // obstacle resume can continue the run
}

// Filled is a hole that lost peers left in the answer. The launcher has filled it with the solution of the problem on
// the hole, with the values of the other peers as boundary data.
type Filled struct {
	Box      [][2]int        `json:"box"`    // smallest box that contains the hole, half open, x first
	Points   int             `json:"points"` // of the hole
	Method   string          `json:"method"`
	Iterates uint64          `json:"iterates"`          // cycles or sweeps of the method
	Residual nullable.Number `json:"relative_residual"` // of the problem on the hole
	Seconds  float64         `json:"seconds"`
}

// StopTime bounds the time, in addition to PeerTimeout, that peers may take to end after a request.
const StopTime = 5 * time.Second

// BeatEvery returns the interval of heartbeats for a peer timeout.
func BeatEvery(timeout time.Duration) time.Duration {
	return min(max(timeout/8, 20*time.Millisecond), 100*time.Millisecond)
}
