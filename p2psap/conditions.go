package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Conditions are all that a Policy looks at. Mode, Locality and Network are known when a session is
// opened; the monitor adds the others while it is open.
type Conditions struct {
	Mode     microproto.Mode
	Locality Locality
	Network  Network
	Distance Distance
	// Lossy: congestion control is needed, because the path loses much, or because an asynchronous session shares a
	// line with others that need it.
	Lossy bool
}

// Composition is the answer of a Policy: micro-protocols from top to bottom, and their settings.
type Composition struct {
	Column    string // name: that of a column of Table I, such as "sync intra ether"
	Protocols []string
	Optional  []string // the last of Protocols, which options added to the column
	Options   microproto.Options
}

// Policy composes a channel for its conditions. It is a pure function.
type Policy interface {
	Compose(c Conditions) (Composition, error)
}

// SessionInfo describes an open session.
type SessionInfo struct {
	Name             string
	Peer             string
	State            SessionState
	Conditions       Conditions
	LocalityReason   string        // of Conditions.Locality
	NetworkReason    string        // of Conditions.Network, where the peers have several
	PathDown         string        // why the path that it uses carries nothing; "": it does
	Moves            uint32        // changes of network since the session was opened
	RTT              time.Duration // smallest of the control channel; 0: not measured
	Path             PathMetrics   // as the sessions with the peer measured it
	Composition      []string
	Protection       []string // the composite that protects frames, from top to bottom; nil: none
	Epoch            uint8
	Changes          uint32        // of composition since the session was opened
	LastPause        time.Duration // of the last change: from both ends' proposals until messages went on
	SegmentSize      int           // payload of the largest segment, bytes
	FrameBytes       int           // largest frame, as the link takes it or as the path is known to carry it
	MessagesSent     uint64
	BytesSent        uint64 // payload of messages
	SegmentsSent     uint64
	Retransmitted    uint64 // segments
	Replaced         uint64 // asynchronous segments that a newer value replaced while the link was busy
	MessagesReceived uint64
	BytesReceived    uint64
	SegmentsReceived uint64
	Overwritten      uint64 // asynchronous values that were replaced before they were received
	Dropped          uint64 // segments
}
