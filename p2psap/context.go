package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Locality is where the two ends of a session are, as the control channel found
// or was told.
type Locality uint8

// From nearest to farthest. The first three are "intra" in Table I.
const (
	SameProcess Locality = iota + 1
	SameHost
	SameCluster
	OtherCluster
)

// Intra tells whether the two ends are in one cluster.
func (l Locality) Intra() bool { return l != OtherCluster }

func (l Locality) String() string {
	switch l {
	case SameProcess:
		return "same process"
	case SameHost:
		return "same host"
	case SameCluster:
		return "same cluster"
	case OtherCluster:
		return "other cluster"
	}
	return "locality?"
}

// Network is the kind of network between two peers.
type Network uint8

// The kinds of SPEC §3. Shared memory and memory take the InfiniBand columns.
const (
	Ethernet Network = iota + 1
	InfiniBand
	SharedMemory
	Memory
)

func (n Network) String() string {
	switch n {
	case Ethernet:
		return "ether"
	case InfiniBand:
		return "ib"
	case SharedMemory:
		return "shm"
	case Memory:
		return "memory"
	}
	return "network?"
}

func (n Network) valid() bool { return n >= Ethernet && n <= Memory }

// Distance is how far apart the two ends have turned out to be while a session was
// at work, where nobody has declared it.
type Distance uint8

// As the session's monitor sees it. DistanceUnknown: as the locality says.
const (
	DistanceUnknown Distance = iota
	Near
	Far
)

func (d Distance) String() string {
	return [...]string{"unknown", "near", "far"}[min(d, Far)]
}

// Conditions are all that the policy looks at. The first three hold when a session is
// opened; the monitor finds out the others while it is at work.
type Conditions struct {
	Mode     microproto.Mode
	Locality Locality
	Network  Network
	Distance Distance
	Lossy    bool // so much is lost that the path must be congested
}

// Composition is what the policy answers: micro-protocols from top to bottom,
// and settings for them.
type Composition struct {
	Column    string // what it is called: a column of Table I, "sync intra ether"
	Protocols []string
	Optional  []string // of those, the last ones, which options added to the column
	Options   microproto.Options
}

// Policy composes a channel for its conditions. It is a pure function.
type Policy interface {
	Compose(c Conditions) (Composition, error)
}

// SessionInfo describes an open session.
type SessionInfo struct {
	Name                           string
	Peer                           string
	State                          SessionState
	Conditions                     Conditions
	LocalityReason                 string        // the conditions have this locality
	NetworkReason                  string        // they have this network, where the peers have several
	Moves                          uint32        // changes of network since it was opened
	RTT                            time.Duration // smallest measured over the control channel; 0: not measured
	Path                           PathMetrics   // to the peer, as its sessions have measured it
	Composition                    []string
	Protection                     []string // the composite that seals its frames, from top to bottom; nil: none
	Epoch                          uint8
	Changes                        uint32        // of composition since it was opened
	LastPause                      time.Duration // of the last change: from the wish of both ends until messages went on
	SegmentSize                    int           // payload bytes of the largest segment
	MessagesSent, MessagesReceived uint64
	BytesSent, BytesReceived       uint64 // payload bytes of messages
	SegmentsSent, SegmentsReceived uint64
	Retransmitted, Dropped         uint64
	Overwritten                    uint64 // asynchronous: values replaced before they were read
	Replaced                       uint64 // asynchronous: segments that a newer value replaced while the link was busy
}
