// Package virtual runs a cluster that nobody has: the real peers of a solver, the real
// protocol (p2psap.Node with its micro-protocols), on a model of machines and networks,
// in virtual time. One seed gives everything.
package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Run says what is to be simulated.
type Config struct {
	Model *cluster.Model // one host a rank
	// Solver is every rank's configuration; Rank and Executor are set here.
	Solver problem.Config
	// Methods is the catalog of Solver.Method; nil: solver.Methods.
	Methods *solver.Catalog
	// Standing is how many points a side a point of Solver.Problem's grid stands for, 1 or more: with 4
	// every point counts as 4³ (4² on a face) in time and bytes, in as many dimensions as the
	// problem has; the iteration itself is that of the coarse grid.
	Scale int
	// Late sends faces only when the whole block has been relaxed: no communication is
	// hidden behind relaxation.
	NoOverlap bool
	// SendQueue is how many bytes a machine's link takes before it is full: frames then wait
	// in the node, where newer asynchronous values replace them. 0: 208 KiB.
	SendQueue int
	// ReceiveQueue is how many bytes that have come may wait for the protocol; more is lost, but
	// for what an ib network carries synchronously. 0: 208 KiB, of ib 1000 segments.
	ReceiveQueue int
	// Until ends the run early: after that much virtual time since the first relaxation; 0: it fails
	// after 100 days.
	Until time.Duration
	// Sweeps ends it when every rank has done that many relaxations of its block, whatever the
	// residual: for steady times. 0: none.
	Sweeps iterate.Iteration
	// Threads that simulating may use: 1 where several runs go on at once. The result does not
	// depend on it. 0: as many as Go has processors.
	Threads int
	// Judge has Result.Met found. It costs some hundred evaluations of the whole grid and
	// changes nothing else.
	Evaluate bool
	Seed     uint64
	Catalog  *microproto.Catalog
	Policy   p2psap.Policy
	// Watch is told now and then how far the run is; nil: nobody. It must only look.
	Watch func(Progress)
}

// Progress of a run.
type Progress struct {
	Virtual  time.Duration
	Events   uint64
	Segments uint64
	Residual float64 // last one known; NaN: none
	Sweeps   float64 // points relaxed / points
}

// Result is how a run ended.
type Result struct {
	Reason   iterate.Reason
	Virtual  time.Duration // from the first relaxation to the verdict
	Met      Met           // with Run.Judge: when the tolerance was met, at the latest at the verdict
	Setup    time.Duration // before: connections and sessions
	Residual float64       // relative, recomputed from the assembled answer
	U        []float64     // the assembled answer [z][y][x]
	Ranks    []RankResult
	// Staleness counts the faces read by their age in sweeps: 0, 1, 2 … ; the last counts all older ones.
	Staleness [64]uint64
	Events    uint64
	Steady    time.Duration // a sweep takes, median over ranks, in the second half of the run
}

// Rank is what became of one rank's time and what it sent.
type RankResult struct {
	Sweeps   float64 // points relaxed / points of its block
	Relaxing time.Duration
	Protocol time.Duration // the relaxing thread's time that the protocol took
	Idle     time.Duration // waiting
	Messages uint64
	Segments uint64 // sent, repeated ones too
	Bytes    uint64 // of frames sent
	Lost     uint64 // frames of its own that were lost
}
