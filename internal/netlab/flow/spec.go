//go:build linux

package flow

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Spec says what a flow is: a TCP connection when Congestion is set, a session
// otherwise.
type Spec struct {
	// Congestion names TCP's congestion control: "reno", "cubic". What else the kernel
	// does (SACK, RACK, TLP) its host decides: see PlainTCP.
	Congestion string

	Mode    microproto.Mode
	Intra   bool               // both ends in one cluster; otherwise in two
	Options microproto.Options // for the micro-protocols
	IPv6    bool
	// Protected frames, and TLS for the control channel.
	Protected bool
	// Optional micro-protocols stand behind the column's own.
	Optional []string
	// Bytes of a message; 0: synchronous, as many as fill eight segments; asynchronous,
	// 128 KiB. Receive is the receiver's queue; 0: 4 MiB.
	Bytes, Receive int
	// EveryMicros is the time between the Sends of an asynchronous flow; 0: 10000.
	EveryMicros int
}

func (s *Spec) String() string {
	if s.Congestion != "" {
		return "tcp " + s.Congestion
	}
	return fmt.Sprintf("session %v", s.Mode)
}

// Counts are what an end knows when it has finished.
type Counts struct {
	Bytes    uint64 // received, or accepted
	Messages uint64 // likewise
	Error    string // what went wrong, or empty
	// Session describes an end of a session, TCP an end of a connection.
	Session p2psap.SessionInfo
	TCP     struct {
		Congestion                string
		Retransmitted, RTTMicros  uint32
		WindowSegments, Threshold uint32
	}
}

// order is what an end is told at its start.
type order struct {
	Spec
	Sends         bool
	Listen, Peer  string // addresses
	Port, Control int    // the peer's, for the end that calls
}

// report is what an end says, one line each.
type report struct {
	Ready  bool     `json:",omitempty"` // the receiver listens
	Open   bool     `json:",omitempty"` // the flow can begin
	Port   int      `json:",omitempty"`
	Sample *Sample  `json:",omitempty"`
	Upto   uint64   `json:",omitempty"` // messages accepted
	End    *Counts  `json:",omitempty"`
	Log    []string `json:",omitempty"`
}

// Sample is how many bytes had arrived at a time.
type Sample struct {
	At    int64 // nanoseconds of the monotonic clock, which the processes of a machine share
	Bytes uint64
}

// Now is the time in Sample's clock.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no system without it
	}
	return t.Nano()
}
