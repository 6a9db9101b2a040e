package rendezvous

import (
	"encoding/json"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Purpose is what a process connects for.
type Purpose string

// The purposes.
const (
	ToTakePart Purpose = ""       // as a peer
	ToVote     Purpose = "vote"   // Vote messages follow, each answered by one
	ToAttach   Purpose = "attach" // View follows while the run is in progress, then Answer
	// ToReconnect goes on with a connection that has fallen silent; Received answers it.
	ToReconnect Purpose = "reconnect"
)

// MaxHeld bounds the ends of time steps that a peer holds.
const MaxHeld = 2

// Standing is the state of a peer that goes on without a leader.
type Standing struct {
	Epoch   int    `json:"epoch"`   // the newest that it knows
	Settled bool   `json:"settled"` // it iterates in that epoch, or has ended
	Valued  bool   `json:"valued"`  // it has values of its box
	Sweep   uint64 `json:"sweep"`
	Control string `json:"control"` // as in Listen
	Cluster string `json:"cluster"` // as in Welcome
	Steps   []int  `json:"steps"`   // time steps of whose ends the peer has its block, oldest first
}

// Resend asks a peer that lost its leader to send the ends of time steps, with its blocks, from that of a step on. The
// peer ends no step before.
type Resend struct {
	From int `json:"from"` // 0: the start; −1: nothing is sent before the next epoch
}

// Held describes a peer's block at the end of a time step, which follows. The keeper holds a copy, since the peer may be
// lost together with the leader.
type Held struct {
	Rank int         `json:"rank"`
	Step int         `json:"step"`
	Box  problem.Box `json:"box"`
}

// Keep asks a peer to hold a copy of the register that decides who leads the run.
type Keep struct {
	Listener []byte `json:"listener"` // for Identity.WithListener
}

// Keeping answers Keep.
type Keeping struct {
	// Address is host:port at which the peer is reached for votes and, if it leads, by everyone. It is empty if the
	// peer cannot listen.
	Address string `json:"address"`
}

// Term states who leads the run.
type Term struct {
	Term register.Term `json:"term"`
}

// Vote is a message between keepers.
type Vote struct {
	Message register.Message `json:"message"`
}

// Record is what a keeper needs to lead the run if the leader is lost.
type Record struct {
	Term      register.Term   `json:"term"`
	Run       string          `json:"run"` // as in Welcome
	Key       []byte          `json:"key"`
	Spec      Spec            `json:"spec"`
	ElapsedMS int64           `json:"elapsed_ms"` // since the first relaxation
	Losses    json.RawMessage `json:"losses"`     // so far, as in the answer of the program

	Checkpoint Checkpoint `json:"checkpoint"`
}

// Checkpoint is what a process needs to go on with the checkpoints of a run.
type Checkpoint struct {
	Directory string            `json:"directory"` // absolute; empty: the run has no checkpoints
	EveryMS   int64             `json:"every_ms"`
	Run       string            `json:"run"`    // its name in the directory
	Term      uint64            `json:"term"`   // of the sets of the process that led first
	Flags     map[string]string `json:"flags"`  // that a checkpoint holds
	Step      int               `json:"step"`   // complete time steps before the run
	Sweeps    uint64            `json:"sweeps"` // before the run
}

// Answer is the result of a run. The problem, ProblemBytes long, and the iterate follow in chunks of StreamProblem and
// StreamSolution.
type Answer struct {
	Spec         Spec            `json:"spec"`
	ProblemBytes int64           `json:"problem_bytes"`
	Outcome      json.RawMessage `json:"outcome"`
}
