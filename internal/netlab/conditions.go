package netlab

import (
	"fmt"
	"time"
)

// Mbit is a rate of a million bits a second, in bytes a second.
const Mbit = 125_000

// Conditions say what one direction of an emulated link does to its packets, in
// the order in which a packet meets them. The zero value hands every packet on at once.
type Conditions struct {
	Down bool // a black hole: nothing enters; what is under way arrives
	// MTU of the path, in bytes, if it is less than the interfaces'; 0: theirs. A
	// larger packet is cut into fragments where its sender allows that; otherwise it is
	// dropped and its sender told (ICMP), unless Silent.
	MTU    int
	Silent bool
	// Pick drops the packets for which it returns true: chosen ones instead of random
	// ones. It is called once a packet, in order, by the link's own thread; it must not
	// block, nor keep the packet.
	Pick func(ip []byte) bool

	// Rate in bytes of IP packets a second; 0: no bound. What waits while another
	// packet is sent is bounded by QueueBytes and QueuePackets (0: no such bound; both 0: 64
	// KiB); a packet that does not fit is dropped.
	Rate                     int
	QueueBytes, QueuePackets int

	// Probabilities from 0 to 1, independent of each other. A lost packet has used the
	// rate. A doubled one arrives twice. A reordered one is Late and the others overtake it.
	Loss, Duplicate, Reorder float64
	Late                     time.Duration

	// Delay is from the last bit sent to the arrival; Jitter adds up to as much again,
	// evenly distributed, without changing the order.
	Delay, Jitter time.Duration
}

func (c *Conditions) check() error {
	for _, p := range []float64{c.Loss, c.Duplicate, c.Reorder} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("netlab: probability %v: want 0 to 1", p)
		}
	}
	if c.Rate < 0 || c.QueueBytes < 0 || c.QueuePackets < 0 || c.Delay < 0 || c.Jitter < 0 || c.Late < 0 {
		return fmt.Errorf("netlab: rate %d, queue %d bytes and %d packets, delay %v, jitter %v, late %v: none may be negative",
			c.Rate, c.QueueBytes, c.QueuePackets, c.Delay, c.Jitter, c.Late)
	}
	if c.Reorder > 0 && c.Late == 0 {
		return fmt.Errorf("netlab: packets that are reordered must be late by something")
	}
	if c.MTU != 0 && c.MTU < leastMTU {
		return fmt.Errorf("netlab: a path's MTU of %d bytes: want %d or more", c.MTU, leastMTU)
	}
	return nil
}

// leastMTU is IPv4's (RFC 791); IPv6 wants 1280.
const leastMTU = 68

// withDefaults bounds the queue.
func (c Conditions) withDefaults() Conditions {
	if c.QueueBytes == 0 && c.QueuePackets == 0 {
		c.QueueBytes = 64 << 10
	}
	return c
}

// Cause tells why a packet was dropped.
type Cause uint8

// The causes.
const (
	Lost      Cause = iota // at random
	Picked                 // by Conditions.Pick
	QueueFull              // the bottleneck's queue
	TooLarge               // for the path's MTU
	Down                   // Conditions.Down
	Overrun                // the emulator's own bound: the link holds too much
	Refused                // by the host: its interface is down
	causes
)

func (c Cause) String() string {
	return [...]string{"lost", "picked", "queue full", "too large", "down", "overrun", "refused"}[c]
}

// Counters count the packets of one direction. Every packet is accounted for:
// In + Fragments + Duplicated = Forwarded + Dropped + Held.
type Counters struct {
	In, Forwarded  uint64
	Bytes          uint64 // forwarded
	Fragments      uint64 // additional packets that came of cutting
	Duplicated     uint64
	Reordered      uint64
	Dropped        [causes]uint64
	Held           int // packets under way now
	PeakQueueBytes int // the most that waited for the rate
}

// Drops is the sum of all that was dropped.
func (c *Counters) Drops() (n uint64) {
	for _, d := range c.Dropped {
		n += d
	}
	return n
}
