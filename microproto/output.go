package microproto

import (
	"slices"
	"strings"
)

// OutputKind says which field of an Output is set.
type OutputKind uint8

// The kinds of output.
const (
	OutFrame   OutputKind = iota + 1 // a frame for the layer below
	OutMessage                       // a delivered message: return it with Recycle
)

// Output is a frame or a message that leaves the composite.
type Output struct {
	Kind    OutputKind
	Frame   Frame    // OutFrame: header and payload; the layer below sets Peer
	Message *Message // OutMessage
}

// Counters account for every message and frame of a composite.
//
//	Taken + Created + Inputs == Done + Recycled + Dropped + Live
//	FramesIn == Inputs + FramesRefused
type Counters struct {
	Taken   uint64 // by Composite.Message
	Created uint64 // by Exec.NewMessage
	Inputs  uint64 // from frames

	SegmentsIn uint64 // segments of the Inputs: a train has several

	Submitted   uint64
	Transmitted uint64 // frames; each frame of a train counts
	Delivered   uint64

	Done     uint64
	Recycled uint64
	Dropped  uint64 // see Drops for the reasons
	Live     int
	Held     int // live messages that are forwarded and wait for a Release

	FramesIn, FramesRefused uint64 // refused: dropped before a message was made
	BytesIn, BytesOut       uint64
	TimersRefused           uint64
	TransmitsRefused        uint64
	Timers, Queued, Outputs int // present numbers

	// Drops is sorted by reason. The slice is the composite's: later drops change it.
	Drops []Drops
}

// Drops counts the messages and frames dropped for one reason.
type Drops struct {
	Reason string
	Count  uint64
}

// Balanced reports whether every message and frame is accounted for.
func (c Counters) Balanced() bool {
	var drops uint64
	for _, d := range c.Drops {
		drops += d.Count
	}
	return c.Live >= 0 && c.Held <= c.Live &&
		c.Taken+c.Created+c.Inputs == c.Done+c.Recycled+c.Dropped+uint64(c.Live) &&
		c.FramesIn == c.Inputs+c.FramesRefused &&
		drops == c.Dropped+c.FramesRefused
}

// countDrop counts a drop. Beyond maxReasons reasons it counts as "other".
func (c *Composite) countDrop(reason string) {
	byReason := func(d Drops, r string) int { return strings.Compare(d.Reason, r) }
	at, found := slices.BinarySearchFunc(c.drops, reason, byReason)
	if found {
		c.drops[at].Count++
		return
	}
	if len(c.drops) >= maxReasons-1 && reason != "other" {
		c.countDrop("other")
		return
	}
	c.drops = slices.Insert(c.drops, at, Drops{reason, 1})
}
