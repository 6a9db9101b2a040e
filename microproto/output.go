package microproto

// Notice is a small record from a micro-protocol to the layer above.
type Notice struct {
	Kind  string // for example "transfer.accepted", declared in package ctp
	Value uint64
}

// OutputKind tells which field of an Output is set.
type OutputKind uint8

// The kinds of output.
const (
	OutFrame   OutputKind = iota + 1 // a frame for the layer below
	OutMessage                       // a delivered message: give it back with Recycle
	OutNotice                        // a notice for the layer above
)

// Output is one thing that left the composite.
type Output struct {
	Kind    OutputKind
	Frame   Frame    // OutFrame: header and payload; Peer is 0, the layer below sets it
	Message *Message // OutMessage
	Notice  Notice   // OutNotice
}

// Counters account for every message and frame of a composite.
//
//	Taken + Created + Inputs == Done + Recycled + Dropped + Live
//	FramesIn == Inputs + FramesRefused
type Counters struct {
	Taken   uint64 // by Composite.Message
	Created uint64 // by Exec.NewMessage
	Inputs  uint64 // from frames

	SegmentsIn uint64 // frames that the Inputs stand for: more than one each in trains

	Submitted   uint64
	Transmitted uint64 // frames that left, those of a train one by one
	Delivered   uint64

	Done     uint64
	Recycled uint64
	Dropped  uint64 // messages; Drops has the reasons
	Live     int
	Held     int // of the live ones, those forwarded and waiting for a Release

	FramesIn, FramesRefused uint64 // refused: no message was made, Drops has the reasons
	BytesIn, BytesOut       uint64
	Notices, NoticesLost    uint64
	TimersRefused           uint64
	TransmitsRefused        uint64
	Timers, Queued, Outputs int // now

	Drops []Drops // sorted by reason
}

// Drops counts what was dropped for one reason.
type Drops struct {
	Reason string
	Count  uint64
}

// Balanced tells whether every message and frame is accounted for.
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

// countDrop counts a drop; reasons past the bound count as "other".
func (c *Composite) countDrop(reason string) {
	for i := range c.drops {
		if c.drops[i].Reason == reason {
			c.drops[i].Count++
			return
		}
	}
	if len(c.drops) >= maxReasons-1 && reason != "other" {
		c.countDrop("other")
		return
	}
	c.drops = append(c.drops, Drops{reason, 1})
}
