//go:build linux

package flow

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Spec describes a flow: a TCP connection if Congestion is set, otherwise a session.
type Spec struct {
	// Congestion is the name of TCP's congestion control, such as "reno" or "cubic". PlainTCP and DefaultTCP
	// set the other features of the host's TCP (SACK, RACK, TLP).
	Congestion string

	Mode  microproto.Mode
	Intra bool // both ends are in one cluster
	IPv6  bool
	// Protected selects protected frames, and TLS for the control channel.
	Protected bool
	// Everywhere has the ends of a session listen on all addresses of their hosts, which several cables may join.
	Everywhere bool
	// Optional lists micro-protocols to append to those of the column.
	Optional []string
	// Bytes is the size of a message. The default is eight full segments for a synchronous and 128 KiB for an
	// asynchronous flow.
	Bytes int
	// Interval is the time between two values of an asynchronous flow, 10 ms if 0, or between two messages of a
	// synchronous one, which otherwise follow each other at once.
	Interval time.Duration
}

func (s *Spec) String() string {
	if s.Congestion != "" {
		return "tcp " + s.Congestion
	}
	return fmt.Sprintf("session %v", s.Mode)
}

// Counts is the result of an end.
type Counts struct {
	Bytes    uint64 // received or accepted
	Messages uint64 // received or accepted
	Error    string // "" if the end succeeded
	Reads    []Read `json:",omitempty"` // of an asynchronous flow: every reading of new data
	Gaps     []Gap  `json:",omitempty"` // of a session: times without a message that were longer than MinGap
	// Session describes an end of a session, TCP an end of a connection.
	Session p2psap.SessionInfo
	TCP     struct {
		Congestion string
		RTTMicros  uint32
	}
}

// endConfig is the configuration of an end.
type endConfig struct {
	Spec
	Sends        bool
	Listen, Peer string // addresses
	Port         int    // the receiver's port, for the sender
}

// report is a report of an end, one line of JSON.
type report struct {
	Ready  bool    `json:",omitempty"` // the receiver listens
	Open   bool    `json:",omitempty"` // the flow is connected
	Port   int     `json:",omitempty"`
	Sample *Sample `json:",omitempty"`
	Upto   uint64  `json:",omitempty"` // messages accepted
	End    *Counts `json:",omitempty"`
}

// Read is a reading of a whole value, whose segments may come from several values.
type Read struct {
	At     int64 // by Now
	Oldest int64 // when the oldest of the values was sent
}

// Gap is a time, by Now, in which a receiver received nothing.
type Gap struct{ From, To int64 }

// MinGap is the shortest gap that a receiver reports.
const MinGap = 2 * time.Millisecond

// arrived notes an arrival. last is that of the one before, 0 for the first.
func (c *Counts) arrived(last *int64) {
	now := Now()
	if *last != 0 && now-*last > int64(MinGap) {
		c.Gaps = append(c.Gaps, Gap{*last, now})
	}
	*last = now
}

// Sample is the number of bytes that had arrived at a time.
type Sample struct {
	At    int64 // nanoseconds of the monotonic clock, which all processes of a machine share
	Bytes uint64
}

// Now returns the current time of Sample's clock.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return t.Nano()
}
