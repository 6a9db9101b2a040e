package rendezvous

import (
	"time"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Spec describes a run: what it solves, how, and with which settings. The launcher makes it of its flags, and all processes
// of the run have the same: peers get it by Welcome, keepers by Record, and obstacle attach by View and Answer.
type Spec struct {
	Problem     string `json:"problem"`             // its name, for messages
	Fingerprint string `json:"problem_fingerprint"` // hex
	N           [3]int `json:"n"`                   // interior grid points per axis
	// Partition is that of the start, or of a later epoch if planes moved between the peers.
	Partition problem.Partition `json:"partition"`
	After     int               `json:"after"`     // time steps that an earlier run has completed
	FromFile  bool              `json:"from_file"` // the run starts from other values than those of the problem

	Scheme    string               `json:"scheme"` // value of --scheme
	Method    problem.MethodConfig `json:"method"`
	Order     problem.Order        `json:"order"`
	Tolerance float64              `json:"tolerance"`
	MaxSweeps uint64               `json:"max_sweeps"`  // 0: no bound
	MaxTime   time.Duration        `json:"max_time_ns"` // since the first relaxation; 0: no bound

	Parts        int    `json:"parts"`         // of the partition that a process runs at the start, each as a peer; 0: one
	Balance      bool   `json:"balance"`       // planes move between the peers
	BalanceParts bool   `json:"balance_parts"` // parts move from slow processes to fast ones
	Elastic      bool   `json:"elastic"`       // they also move to processes that join while the run is in progress
	Threads      int    `json:"threads"`       // of each peer
	Pin          bool   `json:"pin"`           // peers with a process of their own are bound to processors
	PartitionWhy string `json:"partition_why"` // why it is the partition
	MethodWhy    string `json:"method_why"`    // why it is the method

	Slowdown    map[int]float64 `json:"slowdown"`    // factors by which relaxation is slowed, by rank or, with Parts, by process
	Reconfigure bool            `json:"reconfigure"` // sessions change their mode at boundaries of time steps
	Reports     bool            `json:"reports"`     // peers send Sessions and accounts periodically

	MTU        int      `json:"mtu"`        // bytes; 0: that of the interface
	Protect    string   `json:"protect"`    // which sessions are protected: auto, always or never
	Congestion string   `json:"congestion"` // value of --congestion
	Rows       []string `json:"rows"`       // of --rows
	Rails      Rails    `json:"rails"`      // network, mode and block size; a peer's Welcome adds the rest
	Seed       uint64   `json:"seed"`

	PeerTimeout time.Duration `json:"peer_timeout_ns"` // a peer that is silent for longer is lost
	Recover     string        `json:"recover"`         // value of --recover
	// Suspect is the silence after which a peer of another process is replaced, if Recover allows it.
	Suspect   time.Duration `json:"suspect_ns"`
	KeepEvery time.Duration `json:"keep_every_ns"` // least time between two kept iterates; 0: none is kept
	// Keepers is the number of processes, the launcher included, of which the run needs most to go on without one. It is
	// odd; 0 or 1: the run ends with its launcher.
	Keepers int `json:"keepers"`
	Spares  int `json:"spares"` // peers that the launcher starts in addition; any number may join by hand
}

// Values of Spec.Recover.
const (
	RecoverLocal = "local"
	RecoverExact = "exact"
	RecoverOff   = "off"
)

// Recovers reports whether the run goes on after the loss of a peer.
func (s *Spec) Recovers() bool { return s.Recover == RecoverLocal || s.Recover == RecoverExact }

// Lasting reports whether another process leads the run if its leader is lost.
func (s *Spec) Lasting() bool { return s.Keepers > 1 && s.Recovers() }
