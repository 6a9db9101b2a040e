package rendezvous

import (
	"net/netip"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Version of this protocol. Both ends must have the same.
const Version = 7

// Kind tells what a frame's body is.
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
	KindSessions // from the peer, between Ready and Result, when the launcher wants it
	KindStep     // from the peer, between Start and Result, after its block
	KindBlock    // from the peer, before a block, when planes move in the run
)

// Message is one of the types below.
type Message interface{ Kind() Kind }

// Challenge opens a connection.
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
	Seat        int    `json:"seat"` // the rank wanted; -1: any
	Host        string `json:"host"`
	Pid         int    `json:"pid"`
	Problem     string `json:"problem"`      // name of the problem that the peer was started for; "": any
	ProblemHash string `json:"problem_hash"` // its fingerprint, hexadecimal
	// Addresses are those at which other hosts reach the peer.
	Addresses []netip.Addr `json:"addresses"`
}

// Welcome gives a peer its rank, and what it needs to know to listen.
type Welcome struct {
	Rank          int      `json:"rank"`
	Run           string   `json:"run"` // names the run; peers of different runs do not talk
	Key           []byte   `json:"key"` // of the run's control channels, random
	MTU           int      `json:"mtu"` // bytes; 0: that of the interface
	PeerTimeoutMS int64    `json:"peer_timeout_ms"`
	Seed          uint64   `json:"seed"`
	Cluster       string   `json:"cluster"`    // label of the peer's cluster; empty: to be found out
	Protect       string   `json:"protect"`    // which sessions are protected: auto, always or never
	Congestion    string   `json:"congestion"` // the word of --congestion
	Rows          []string `json:"rows"`       // of --rows
	Rails         Rails    `json:"rails"`
}

// Rails say over which networks the peers of a run talk. What is of InfiniBand both
// ends of a pair must have alike.
type Rails struct {
	Network      string `json:"network"`       // the word of --network
	Mode         string `json:"mode"`          // the word of --ib-mode
	BlockBytes   int    `json:"block_bytes"`   // of the mode segments
	MessageBytes int    `json:"message_bytes"` // the largest message between two peers of the run
	Values       int    `json:"values"`        // most asynchronous values that a peer sends to another one
	Neighbours   int    `json:"neighbours"`    // of this peer
}

// Listen says where the other peers can reach this one.
type Listen struct {
	Control string `json:"control"` // host:port of its control channel
}

// Refuse says why a peer cannot take part.
type Refuse struct {
	Reason string `json:"reason"`
}

// Member is a peer as the others see it.
type Member struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Pid     int    `json:"pid"`
	Control string `json:"control"`
	Cluster string `json:"cluster"` // empty: none was declared
}

// Assign is a peer's part of the work. The problem follows in chunks.
type Assign struct {
	Members      []Member `json:"members"` // by rank
	Problem      string   `json:"problem"` // its name, for messages
	ProblemBytes int64    `json:"problem_bytes"`
	Fingerprint  string   `json:"problem_fingerprint"` // hex
	N            [3]int   `json:"n"`
	Cuts         [3][]int `json:"cuts"`
	Scheme       string   `json:"scheme"`
	Method       Method   `json:"method"`
	Order        string   `json:"order"`
	Tolerance    float64  `json:"tolerance"`
	MaxSweeps    uint64   `json:"max_sweeps"`
	MaxTimeMS    int64    `json:"max_time_ms"` // 0: no bound
	Threads      int      `json:"threads"`
	Slow         float64  `json:"slow"`        // relaxes this many times slower; 1: as it can
	Status       bool     `json:"status"`      // tell of the sessions again and again
	Balance      bool     `json:"balance"`     // planes move between the peers
	Reconfigure  bool     `json:"reconfigure"` // sessions change their mode at boundaries of time steps
	Initial      bool     `json:"initial"`     // the starting iterate of the own box follows in chunks
}

// Method is solver.MethodConfig on the wire.
type Method struct {
	Name     string  `json:"name"`
	Local    string  `json:"local"`
	Overlap  int     `json:"overlap"`
	Work     int     `json:"work"`
	Coarse   int     `json:"coarse"`
	Flexible bool    `json:"flexible"`
	Omega    float64 `json:"omega"`
	Cycle    string  `json:"cycle"`
	Together int     `json:"together"`
	Step     float64 `json:"step"`
}

// Stream tells what a Chunk is part of.
type Stream uint8

// The streams: to the peer, to the peer, from the peer.
const (
	StreamProblem Stream = iota + 1
	StreamInitial
	StreamSolution
	StreamStep // from the peer: its block at the end of a time step
)

// Chunk is a run of bytes of a stream, in order. Data is only valid until the
// next message is received on the connection.
type Chunk struct {
	Stream Stream
	Offset int64 // bytes
	Data   []byte
}

// Ready says that a peer has built its part and can talk to its neighbours.
type Ready struct{}

// Start lets the peers relax.
type Start struct{}

// Beat says that a peer lives, and how far it is.
type Beat struct {
	Step     int             `json:"step"` // time step in progress; 0: the problem is stationary
	Sweep    uint64          `json:"sweep"`
	Residual nullable.Number `json:"residual"` // relative, of the whole; not a number: not known yet
}

// Stop asks for an early end with the best iterate.
type Stop struct{}

// Lost says that a peer is gone and the run with it.
type Lost struct {
	Rank int    `json:"rank"` // -1: none in particular
	Why  string `json:"why"`
}

// Result is a peer's account of its run. Its block came before it, in chunks.
type Result struct {
	Reason    string          `json:"reason"` // "converged", "sweeps", "time", "interrupted", "stagnated", "failed"
	Error     string          `json:"error"`  // when failed
	Lost      int             `json:"lost"`   // the rank that it misses; -1: none
	Sweeps    uint64          `json:"sweeps"`
	Iterate   uint64          `json:"iterate"`
	Residual  nullable.Number `json:"residual"`
	Snapshots int             `json:"snapshots"`
	Points    int             `json:"points"`
	Relaxed   uint64          `json:"relaxed"` // points, by all sweeps
	Given     int             `json:"given"`   // planes that went to neighbours
	Taken     int             `json:"taken"`   // planes that came from neighbours
	Method    string          `json:"method"`  // what it works with

	Steps                  int     `json:"steps"` // complete time steps
	Reconfigurations       int     `json:"reconfigurations"`
	ReconfigurationSeconds float64 `json:"reconfiguration_seconds"` // waiting for neighbours included
	StaleFaces             uint64  `json:"stale_faces"`             // of an old time step, dropped

	Seconds    float64 `json:"seconds"`     // from the first relaxation to the verdict
	CPUSeconds float64 `json:"cpu_seconds"` // of the process, since Start
	PeakBytes  int64   `json:"peak_bytes"`  // resident, of the process
	IdleBytes  int64   `json:"idle_bytes"`  // resident peak before the block was made
	Kernel     string  `json:"kernel"`
	Placed     bool    `json:"placed"` // the block lies where the launcher wanted it: none was sent

	// Refused counts what did not come from a peer of the run, or came twice, by reason.
	Refused map[string]uint64 `json:"refused"`

	// Device is that of the peer's InfiniBand rail; empty: it has none, Without says why.
	Device  string `json:"device"`
	Without string `json:"without"`

	Sessions []Session `json:"sessions"`
}

// Sessions are those of a peer, as they are now.
type Sessions struct {
	Sessions []Session `json:"sessions"`
}

// Bye ends the connection: everything has arrived.
type Bye struct{}

// Kind is KindChallenge.
func (Challenge) Kind() Kind { return KindChallenge }

// Kind is KindJoin.
func (Join) Kind() Kind { return KindJoin }

// Kind is KindWelcome.
func (Welcome) Kind() Kind { return KindWelcome }

// Kind is KindRefuse.
func (Refuse) Kind() Kind { return KindRefuse }

// Kind is KindListen.
func (Listen) Kind() Kind { return KindListen }

// Kind is KindAssign.
func (Assign) Kind() Kind { return KindAssign }

// Kind is KindChunk.
func (Chunk) Kind() Kind { return KindChunk }

// Kind is KindReady.
func (Ready) Kind() Kind { return KindReady }

// Kind is KindStart.
func (Start) Kind() Kind { return KindStart }

// Kind is KindBeat.
func (Beat) Kind() Kind { return KindBeat }

// Kind is KindStop.
func (Stop) Kind() Kind { return KindStop }

// Kind is KindLost.
func (Lost) Kind() Kind { return KindLost }

// Kind is KindResult.
func (Result) Kind() Kind { return KindResult }

// Kind is KindBye.
func (Bye) Kind() Kind { return KindBye }

// Kind is KindSessions.
func (Sessions) Kind() Kind { return KindSessions }
