package rendezvous

import (
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Version is that of this protocol. Both ends must have the same.
const Version = 21

// Kind is the type of a frame's body.
type Kind uint8

// The kinds of frames, in the order in which a run meets them.
const (
	KindChallenge Kind = iota + 1
	KindJoin
	KindWelcome
	KindRefuse
	KindListen
	KindAssign
	KindChunk
	KindReady
	KindStart
	KindBeat
	KindStop
	KindLost
	KindResult
	KindBye
	KindSessions    // from the peer, between Ready and Result, if Assign.Status is set
	KindStep        // from the peer, between Start and Result, after its block
	KindBlock       // from the peer, before a block, if Assign.Balance is set
	KindSpare       // from the launcher, in place of Welcome until the peer is needed
	KindEpoch       // from the launcher, after a loss
	KindCapture     // from the launcher, after Start
	KindCaptured    // from the peer, after the values, in chunks
	KindRepaired    // from a peer that replaces a lost one, between Assign and Ready
	KindHost        // from the launcher, for the other parts of a process, after a loss, or before a part moves
	KindProbe       // from the launcher, when the peer is silent
	KindUnreachable // from the peer, between Ready and Result
	KindKeep        // from the leader, after Start
	KindKeeping     // from the peer, after Keep
	KindTerm        // from the leader
	KindRecord      // from the leader to a keeper
	KindVote        // in both directions, on a connection for votes
	KindAnswer      // from the leader, on a connection for the answer
	KindLeave       // from a peer whose process is asked to leave, after Ready
	KindResend      // from a process that leads the run after the loss of the leader
	KindHeld        // from the leader to a keeper, before a block in chunks of StreamStep
	KindView        // from the leader, on a connection for the answer, until Answer
	KindReceived    // in both directions, on a connection that may go on over another cable
)

// Message is a value of one of the types below.
type Message any

// Challenge is the first message of a connection.
type Challenge struct {
	Version     int    `json:"version"`
	Program     string `json:"program"`     // version of the launcher's program, for messages
	Fingerprint string `json:"fingerprint"` // of the protocols that peers speak to each other
}

// Join asks for a place in the run.
type Join struct {
	Version     int    `json:"version"`
	Program     string `json:"program"`
	Fingerprint string `json:"fingerprint"`
	Rank        int    `json:"rank"`               // requested; −1: any
	OrSpare     bool   `json:"or_spare,omitempty"` // the peer waits as a spare one if the rank is taken
	Host        string `json:"host"`
	Pid         int    `json:"pid"`
	PidSpace    uint64 `json:"pid_space"`    // driver.PidSpace; see Conn.Introduce
	Problem     string `json:"problem"`      // name of the problem that the peer accepts; "": any
	ProblemHash string `json:"problem_hash"` // its fingerprint, hexadecimal
	// Addresses are those at which other hosts reach the peer.
	Addresses []netip.Addr `json:"addresses"`
	Purpose   Purpose      `json:"purpose,omitempty"`
	// Reconnect, of ToReconnect, is the connection that goes on over this one.
	Reconnect *Reconnect `json:"reconnect,omitempty"`
	// Standing is that of a peer of the run whose leader was lost; nil: the peer has no place.
	Standing *Standing `json:"standing,omitempty"`
}

// Welcome assigns a rank and describes the run. A peer that has lost its leader has the description already: Spec is zero.
type Welcome struct {
	Rank    int    `json:"rank"`
	Epoch   int    `json:"epoch"`   // in which the peer takes part first; see Epoch
	Run     string `json:"run"`     // identifies the run; peers of different runs refuse each other
	Key     []byte `json:"key"`     // of the run's control channels, random
	Cluster string `json:"cluster"` // label of the peer's cluster; empty: to be measured
	Rails   Rails  `json:"rails"`   // of Spec, with the sizes that this peer needs
	Spec    Spec   `json:"spec"`
	// Keepers are addresses at which the run can be joined if its leader is lost.
	Keepers []string `json:"keepers"`
	// Reconnect is the identity of the connection, and Addresses are those of the process at which it may go on; empty
	// where only one cable leads there.
	Reconnect []byte   `json:"reconnect,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
}

// Reconnect asks a process to go on with a connection over the one on which it is sent.
type Reconnect struct {
	ID       []byte `json:"id"`
	Received uint64 `json:"received"` // messages on that connection
}

// Received acknowledges the messages of a connection, and answers Reconnect.
type Received struct {
	Received uint64 `json:"received"`
}

// Rails are the settings of the networks between the peers of a run. Both ends of a pair must have the same settings of
// InfiniBand.
type Rails struct {
	Network      string `json:"network"`       // value of --network
	Mode         string `json:"mode"`          // value of --ib-mode
	BlockBytes   int    `json:"block_bytes"`   // of a block in mode segments
	MessageBytes int    `json:"message_bytes"` // the largest message between two peers of the run
	Values       int    `json:"values"`        // maximum number of asynchronous values from one peer to another
	Neighbours   int    `json:"neighbours"`    // of this peer
	Synchronous  bool   `json:"synchronous"`   // peers of one cluster exchange faces in lockstep
}

// Listen holds the address at which other peers reach this one.
type Listen struct {
	Control string      `json:"control"` // host:port of its control channel; several, separated by commas, where it has several
	Epoch   int         `json:"epoch"`   // for which it was opened
	Sweep   uint64      `json:"sweep"`   // newest iterate of the peer, from which it goes on in lockstep
	Omega   float64     `json:"omega"`   // iterate.Progress.Omega of that iterate
	Idle    bool        `json:"idle"`    // the peer does not relax before the epoch begins
	Box     problem.Box `json:"box"`     // of the peer's values, which other peers have if planes move; empty: it has none
	// Holding lists the kept iterates that the peer has copies of.
	Holding *buddy.Holding `json:"holding,omitempty"`
}

// Refuse is the reason why a peer cannot take part.
type Refuse struct {
	Reason string `json:"reason"`
	Later  bool   `json:"later,omitempty"`  // another attempt may succeed, here or at another keeper
	Leader string `json:"leader,omitempty"` // address of the process that led the run last, as far as is known
}

// Member is a peer of the run, as Assign lists it.
type Member struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Pid     int    `json:"pid"`
	Control string `json:"control"`
	Cluster string `json:"cluster"` // empty: none was declared

	PidSpace uint64 `json:"pid_space"`
}

// Assign is a peer's part of the work in an epoch. The problem follows in chunks, unless the peer has it.
type Assign struct {
	Epoch        int           `json:"epoch"`
	Members      []Member      `json:"members"`       // by rank; in a later epoch those to connect to, and new processes
	ProblemBytes int64         `json:"problem_bytes"` // 0: the peer has it
	Cuts         [3][]int      `json:"cuts"`
	MaxSweeps    uint64        `json:"max_sweeps"`  // that are left; 0: no bound
	MaxTime      time.Duration `json:"max_time_ns"` // that is left; 0: no bound
	Slowdown     float64       `json:"slowdown"`    // factor by which relaxation is slowed; 1: none
	Initial      bool          `json:"initial"`     // the starting iterate of the box follows in chunks

	Earlier []byte `json:"earlier,omitempty"` // Result.State of the run that ended with Initial; nil: there is none

	After  int     `json:"after"`  // number of time steps that are complete; Initial is the end of the last one
	Sweeps uint64  `json:"sweeps"` // that this rank has made in former epochs, 0 if the peer knows them
	Omega  float64 `json:"omega"`  // found in former epochs, as in problem.Config; 0: none
	Repair *Repair `json:"repair"` // what a peer has to repair that has no values of its box; nil: nothing

	Resume *Resume `json:"resume,omitempty"` // nil: the peer goes on from its newest values
}

// Resume names the kept iterate from which all peers go on.
type Resume struct {
	Iterate uint64 `json:"iterate"`
	State   []byte `json:"state"` // with Initial: the iterate's values of a lost peer; nil: the peer has a copy
	Again   bool   `json:"again"` // no iterate is known of all peers: the run begins again
}

// Repair describes the values from which a peer computes those of a lost block.
type Repair struct {
	Holes []problem.Box `json:"holes"` // lost blocks; that of the peer is one of them
	// Around holds the boxes of survivors. Their values beside the holes (repair.Shell) follow in chunks.
	Around    []problem.Box `json:"around"`
	Tolerance float64       `json:"tolerance"` // of the whole problem; see repair.Hole
}

// Epoch begins an epoch: a peer was lost, and the others go on with the values that they have. The peer opens new
// sockets for it and sends Listen; Assign follows.
type Epoch struct {
	Epoch int   `json:"epoch"`
	Lost  []int `json:"lost"` // ranks of all peers that were lost since all peers relaxed in the same epoch, ascending
}

// Capture asks for values of the peer's newest iterate. It sends them in chunks of StreamCapture, box by box, and then
// Captured.
type Capture struct {
	Number int           `json:"number"`
	Boxes  []problem.Box `json:"boxes"`
	Copy   *Copy         `json:"copy,omitempty"`   // asks for a copy of another peer's block instead
	Sample *Sample       `json:"sample,omitempty"` // asks for the values at some points instead
}

// Copy names a copy of a peer's block.
type Copy struct {
	Rank    int    `json:"rank"`
	Iterate uint64 `json:"iterate"`
}

// Captured states that the values of a Capture have been sent.
type Captured struct {
	Number   int             `json:"number"`
	Box      problem.Box     `json:"box"` // of the peer
	Step     int             `json:"step"`
	Sweep    uint64          `json:"sweep"`
	Residual nullable.Number `json:"residual"` // as in Beat
	Copy     *Copy           `json:"copy,omitempty"`
	State    []byte          `json:"state,omitempty"`   // of Copy; nil: the peer does not have it
	Sampled  bool            `json:"sampled,omitempty"` // the values are those of a Sample that lie in Box
}

// Repaired states that a peer has computed the values of a lost block.
type Repaired struct {
	Epoch    int             `json:"epoch"`
	Method   string          `json:"method"` // empty: starting values are better
	Iterates uint64          `json:"iterates"`
	Residual nullable.Number `json:"residual"` // relative, of the problem on the hole
	Seconds  float64         `json:"seconds"`
	Refused  int             `json:"refused"` // values beside the block that are outside the obstacles
	Unbound  string          `json:"unbound"` // why the error may have been raised; empty: it was not
}

// Spare accepts a peer as a spare one, which waits for Welcome or Bye. It is sent again when the keepers change.
type Spare struct {
	Keepers []string `json:"keepers"` // as in Welcome
}

// Probe makes the kernel of a silent peer's host acknowledge something. The peer ignores it.
type Probe struct{}

// Unreachable states that the peer has heard nothing from another one for the peer timeout, and goes on without it.
type Unreachable struct {
	Epoch int    `json:"epoch"`
	Rank  int    `json:"rank"`
	Why   string `json:"why"`
	// Refused states that the other one sent what no peer of the run sends.
	Refused bool `json:"refused"`
}

// Host asks the process of a peer to run another peer, which joins the run for a rank.
type Host struct {
	Rank int `json:"rank"`
}

// Leave asks the launcher to give all parts of the peer's process to others. When a part has arrived there, the launcher
// sends Bye.
type Leave struct{}

// Stream is what a Chunk is part of.
type Stream uint8

// The streams.
const (
	StreamProblem  Stream = iota + 1
	StreamInitial         // starting iterate of the peer's box
	StreamSolution        // the peer's block at the end
	StreamStep            // the peer's block at the end of a time step
	StreamAround          // to the peer: values of Repair.Around
	StreamCapture         // values of Capture.Boxes
	streams
)

// Chunk holds successive bytes of a stream: finite values, except of StreamProblem. Data is valid until the next message is received on the connection.
type Chunk struct {
	Stream Stream
	Offset int64 // bytes
	Data   []byte
}

// Block names the box of the chunks that follow in StreamSolution or StreamStep, if planes move between peers. The
// receiver checks it.
type Block struct {
	Stream Stream      `json:"stream"`
	Box    problem.Box `json:"box"`
}

// Ready states that a peer has built its part and is connected to its neighbours.
type Ready struct {
	Epoch int `json:"epoch"`
}

// Step states that a peer has completed a time step. Its block at the end of the step precedes it, in chunks of
// StreamStep.
type Step struct {
	Step     int             `json:"step"`   // from 1; 0, for the start, only after Resend
	Sweeps   uint64          `json:"sweeps"` // of the peer, in this step
	Residual nullable.Number `json:"residual"`
}

// Start starts the relaxation.
type Start struct{}

// Beat is a heartbeat with the progress of a peer.
type Beat struct {
	Step     int             `json:"step"` // time step in progress; 0: the problem is stationary
	Sweep    uint64          `json:"sweep"`
	Residual nullable.Number `json:"residual"`          // relative, of the whole grid; unknown before the first
	Relaxed  uint64          `json:"relaxed"`           // points relaxed in the epoch
	Busy     float64         `json:"busy"`              // seconds that this has taken
	Severed  *Severed        `json:"severed,omitempty"` // nil: the peer exchanges values with all its neighbours
}

// Severed is a neighbour with which a peer exchanges nothing at present.
type Severed struct {
	Rank int    `json:"rank"`
	Why  string `json:"why"`
}

// Stop requests an early end with the best iterate.
type Stop struct{}

// Lost states that a peer is lost, which ends the run.
type Lost struct {
	Rank   int    `json:"rank"` // −1: none in particular
	Why    string `json:"why"`
	CutOff bool   `json:"cut_off"` // the run may go on elsewhere
}

// Result is a peer's report at the end of its run. Its block precedes it in chunks.
type Result struct {
	Epoch     int             `json:"epoch"`
	Reason    string          `json:"reason"`             // "converged", "sweeps", "time", "interrupted", "stagnated", "diverged", "failed"
	Error     string          `json:"error"`              // when failed
	Lost      int             `json:"lost"`               // rank of the peer that it lost; −1: none
	Panicked  bool            `json:"panicked,omitempty"` // it failed in the code of an iteration of the user's own
	Sweeps    uint64          `json:"sweeps"`
	Residual  nullable.Number `json:"residual"`
	Snapshots int             `json:"snapshots"`
	Points    int             `json:"points"`
	Relaxed   uint64          `json:"relaxed"` // points relaxed, by all sweeps
	Given     int             `json:"given"`   // planes sent to neighbours
	Taken     int             `json:"taken"`   // planes received from neighbours
	Method    string          `json:"method"`  // description of its method
	State     []byte          `json:"state"`   // iterate.Outcome.State

	Reconfigurations       int     `json:"reconfigurations"`
	ReconfigurationSeconds float64 `json:"reconfiguration_seconds"` // waiting for neighbours included
	StaleFaces             uint64  `json:"stale_faces"`             // of a former time step, dropped

	Seconds    float64 `json:"seconds"`     // from the first relaxation to the verdict
	CPUSeconds float64 `json:"cpu_seconds"` // of the process, since Start
	PeakBytes  int64   `json:"peak_bytes"`  // resident, of the process
	IdleBytes  int64   `json:"idle_bytes"`  // resident peak before the block was allocated
	Kernel     string  `json:"kernel"`
	Processors []int   `json:"processors"` // to which the process is bound; none: it is not
	Placed     bool    `json:"placed"`     // the block is in the shared memory of the launcher; it was not sent

	// Refused counts, by reason, what did not come from a peer of the run or came twice.
	Refused map[string]uint64 `json:"refused"`

	// Device is that of the peer's InfiniBand rail; if it is empty, Without is the reason.
	Device  string `json:"device"`
	Without string `json:"without"`

	Sessions []Session `json:"sessions"`          // of the epoch
	Former   Traffic   `json:"former,omitzero"`   // of former epochs
	Account  *Account  `json:"account,omitempty"` // if Spec.Reports is set
}

// Sessions holds the current sessions of a peer, and its account once it relaxes.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Former   Traffic   `json:"former,omitzero"` // of former epochs
	Account  *Account  `json:"account,omitempty"`
}

// Account is how a peer has spent its time in an epoch, and how old the values were that it read.
type Account struct {
	Epoch    int     `json:"epoch"`
	Sweep    uint64  `json:"sweep"`    // of all epochs
	Seconds  float64 `json:"seconds"`  // since its first relaxation
	Relaxing float64 `json:"relaxing"` // seconds
	Waiting  float64 `json:"waiting"`  // seconds, for other peers
	Reads    []Reads `json:"reads"`
}

// Reads counts the faces of one neighbour that sweeps have read; see runner.Reads.
type Reads struct {
	Rank   int      `json:"rank"`
	Faces  uint64   `json:"faces"`
	Sum    uint64   `json:"sum"`
	Newest int      `json:"newest"`
	Ages   []uint64 `json:"ages"`
}

// Bye ends the connection after everything has arrived, or when another process runs the peer's part.
type Bye struct {
	Moved bool `json:"moved,omitempty"` // the part runs elsewhere, and the run goes on
	Early bool `json:"early,omitempty"` // the run has ended before its tolerance
}
