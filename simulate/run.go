package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/trace"
)

// Config describes a run. Model is required, and Solver or New.
type Config struct {
	// Model is the cluster. Host i runs the peers of ranks i·Parts to (i+1)·Parts−1 at the start.
	Model *cluster.Model
	// Parts is the number of peers that each host runs in one process, at the start. They relax one at a time. 0: 1.
	Parts int
	// Balance moves peers from slow hosts to fast ones, as package internal/placement decides. It needs Recover.
	Balance bool
	// Joins are when further hosts of Model have joined the run, since the first relaxation. They take peers of others.
	// They need Recover.
	Joins []time.Duration
	// Leaves are when hosts are asked to leave: their peers move to others, if there are any. They need Recover.
	Leaves []Leave
	// Solver configures the peers of an obstacle problem. Run sets Rank and Executor.
	Solver problem.Config
	// Methods is the catalog of Solver.Method; nil: solver.Methods.
	Methods *solver.Catalog
	// New, if not nil, makes the peer of a rank, of any iteration; Solver is not used then. points
	// is the number of points of its block, all of which a sweep relaxes.
	New func(rank iterate.Rank) (p Peer, points int, err error)
	// Peers is the number of peers that New makes.
	Peers int
	// Catalog lists the micro-protocols; nil: ctp.Catalog.
	Catalog *microproto.Catalog
	// Policy composes them; nil: p2psap.TablePolicy.
	Policy p2psap.Policy
	// Monitor sets when the nodes compose sessions anew, by what they measure.
	Monitor p2psap.MonitorConfig
	Seed    uint64

	// Scale makes every grid point of Solver.Problem stand for Scale points along each axis; 0: 1.
	// With 4, a point of a three-dimensional grid counts as 4³ points in time, and as 4² points
	// in the bytes of a face. The iteration itself is that of the coarse grid.
	Scale int
	// NoOverlap sends the faces of a sweep only after the whole block has been relaxed.
	NoOverlap bool
	// SendQueue is the number of bytes that a machine's link accepts before it is full. Then
	// frames wait in the node, where newer asynchronous values replace them. 0: a millisecond of the
	// rate and 112 KiB at least, as package ether learns; for ib 208 KiB, and 1000 segments for synchronous frames.
	SendQueue int
	// ReceiveQueue is the number of received bytes that may wait for the protocol. More is lost,
	// except for synchronous frames of an ib network. 0: 208 KiB, or 1000 segments of ib.
	ReceiveQueue int
	// Until ends the run after that much virtual time since the first relaxation. 0: the run
	// fails after 100 days.
	Until time.Duration
	// Sweeps ends the run when every peer has relaxed its block that often, whatever the
	// residual; 0: no bound.
	Sweeps iterate.Iteration
	// Recover, if not nil, makes the run go on after machines of the model are lost. Otherwise it fails.
	Recover *Recovery
	// Evaluate finds Result.Met. That takes some hundred evaluations of the whole grid and changes
	// nothing else.
	Evaluate bool
	// Threads bounds the threads that simulate. The result does not depend on it. 0: GOMAXPROCS.
	Threads int
	// Trace, if not nil, has every peer record what it does; see Result.Traces. The result does not depend on it.
	Trace *trace.Options
	// Watch is called now and then with the progress; nil: never. It must not call the peers.
	Watch func(Progress)

	resumed resumption // the zero value in the first epoch
}

// Peer is what a run needs of a peer. Every problem.Peer implements it.
type Peer interface {
	exchange.Peer
	Relax(op iterate.Op)
	Outcome() iterate.Outcome
	Progress() iterate.Progress
}

// Progress is how far a run is.
type Progress struct {
	Virtual  time.Duration // since the first relaxation
	Events   uint64
	Segments uint64
	Step     int     // time step in progress; 0: the problem is stationary
	Residual float64 // the newest that rank 0 knows; NaN: none
	Sweeps   float64 // points relaxed / points
	// Ranks returns the accounts of all ranks in the epoch in progress, without their messages. It may be called until
	// Watch returns.
	Ranks func() []RankResult
	// Blocks calls f for every rank with its box and a function that writes a part of its newest iterate, as
	// problem.Peer.Values does. A relaxation that is in progress in virtual time may be complete in it. The result of the
	// run does not depend on it. It may be called until Watch returns, and calls nothing with Config.New.
	Blocks func(f func(box problem.Box, values func(dst []float64, part problem.Box)))
}

// Result is the outcome of a run.
type Result struct {
	Reason  iterate.Reason
	Virtual time.Duration // from the first relaxation to the verdict
	Setup   time.Duration // before the first relaxation: connections and sessions
	// Residual is relative: of U, with time steps of the worst one. With Config.New it is what rank 0 reports.
	Residual float64
	// U is the assembled answer [z][y][x], with time steps the end of the last complete one. nil with Config.New.
	U     []float64
	Steps []Step // the complete time steps
	Met   Met    // with Config.Evaluate: when U met the tolerance, at the latest at the verdict
	Ranks []RankResult
	// Staleness counts the faces that were read by their age in sweeps.
	Staleness iterate.AgeCounts
	Events    uint64
	Steady    time.Duration // time of a sweep in the second half of the run (of its last epoch), median over ranks
	Losses    []Loss        // with Config.Recover
	Moves     []Move        // with Config.Balance, Joins and Leaves
	Leaders   []Leader      // that have led the run after its launcher
	CutOff    []CutOff      // processes that have no part in the run any more, by the time of their end
	Traces    []*trace.Node // with Config.Trace: of every rank in every epoch, at most maxTraces of the newest
	Terms     []Term        // what the keepers have decided, by number: there is one of each
}

// RankResult is the account of one rank.
type RankResult struct {
	Sweeps   float64 // points relaxed / points of its block
	Relaxing time.Duration
	Protocol time.Duration // the relaxing thread's time that the protocol took
	Idle     time.Duration // the relaxing thread's time that was spent waiting
	Messages uint64        // sent
	Segments uint64        // sent, retransmissions included
	Bytes    uint64        // of frames sent
	Lost     uint64        // frames sent that were lost
	Reads    []Reads       // from the neighbours with halos
}

// Reads counts the faces of one neighbour that sweeps have read.
type Reads struct {
	Rank   iterate.Rank
	Faces  uint64
	Fresh  uint64 // of them: newer than the one read before
	Sum    uint64 // of their ages in sweeps
	Newest int    // age of the face read last
	label  uint64 // of that face
}

// MeanAge returns the mean age of the faces that were read, in sweeps; NaN: none were read.
func (r *Result) MeanAge() float64 {
	var faces, sum uint64
	for i := range r.Ranks {
		for _, read := range r.Ranks[i].Reads {
			faces, sum = faces+read.Faces, sum+read.Sum
		}
	}
	return float64(sum) / float64(faces)
}

// MeanInterval returns after how many sweeps a face is followed by a newer one, on average over the ranks' neighbours; NaN:
// no rank has any.
func (r *Result) MeanInterval() float64 {
	pairs, sum := 0, 0.0
	for i := range r.Ranks {
		for _, read := range r.Ranks[i].Reads {
			pairs++
			sum += float64(read.Faces) / float64(max(1, read.Fresh))
		}
	}
	return sum / float64(pairs)
}

// Sweeps returns the mean number of sweeps of a rank.
func (r *Result) Sweeps() (sweeps float64) {
	for i := range r.Ranks {
		sweeps += r.Ranks[i].Sweeps / float64(len(r.Ranks))
	}
	return sweeps
}

// Messages returns the number of messages that all ranks sent.
func (r *Result) Messages() (messages uint64) {
	for i := range r.Ranks {
		messages += r.Ranks[i].Messages
	}
	return messages
}
