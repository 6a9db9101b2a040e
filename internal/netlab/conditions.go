// Package netlab builds networks of hosts for tests from Linux network namespaces. Each host has its own
// interfaces, addresses and ports. Hosts are connected by veth wires with an optional rate and queue, or
// by emulated links. The package needs Linux and root; elsewhere New skips the test and states the reason.
package netlab

import (
	"cmp"
	"fmt"
	"time"
)

// Mbit is a rate of one million bits per second, in bytes per second.
const Mbit = 125_000

// Conditions describes one direction of an emulated link, in the order in which a packet meets the
// conditions. The zero value forwards every packet immediately.
type Conditions struct {
	Down bool // a black hole: new packets are dropped, packets in flight arrive
	// MTU is the MTU of the path in bytes, or 0 for the MTU of the interfaces. A larger packet is fragmented
	// if its sender allows it. Otherwise it is dropped, and the sender gets an ICMP message unless Silent.
	MTU    int
	Silent bool
	// Pick drops the packets for which it returns true. The link calls it once per packet, in order.
	// It must not block and must not retain the packet.
	Pick func(ip []byte) bool

	// Rate is the rate in bytes of IP packets per second, unbounded if 0. QueueBytes bounds the packets that
	// wait for transmission, 64 KiB if 0. A packet that does not fit is dropped.
	Rate, QueueBytes int

	// Loss, Duplicate and Reorder are independent probabilities from 0 to 1. Lost packets consume the rate.
	// A duplicated packet arrives twice. A reordered packet is delayed by Late more, and others overtake it.
	Loss, Duplicate, Reorder float64
	Late                     time.Duration

	// Delay is the time from the last bit sent to the arrival. Jitter is the upper bound of an additional,
	// uniformly distributed delay, which does not change the order.
	Delay, Jitter time.Duration
}

func (c *Conditions) check() error {
	for _, p := range []float64{c.Loss, c.Duplicate, c.Reorder} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("netlab: the probability %v is not between 0 and 1", p)
		}
	}
	if c.Rate < 0 || c.QueueBytes < 0 || c.Delay < 0 || c.Jitter < 0 || c.Late < 0 {
		return fmt.Errorf("netlab: a negative value among rate %d, queue %d bytes, delay %v, jitter %v, late %v",
			c.Rate, c.QueueBytes, c.Delay, c.Jitter, c.Late)
	}
	if c.Reorder > 0 && c.Late == 0 {
		return fmt.Errorf("netlab: Reorder is %v, but Late is 0; set Late", c.Reorder)
	}
	if c.MTU != 0 && c.MTU < minMTU {
		return fmt.Errorf("netlab: the path MTU of %d bytes is below %d", c.MTU, minMTU)
	}
	return nil
}

// minMTU is the minimum MTU of IPv4 (RFC 791). The minimum of IPv6 is 1280.
const minMTU = 68

// withDefaults returns c with a bounded queue.
func (c Conditions) withDefaults() Conditions {
	c.QueueBytes = cmp.Or(c.QueueBytes, 64<<10)
	return c
}

// Cause is the reason why a packet was dropped.
type Cause uint8

// The reasons.
const (
	Lost      Cause = iota // at random
	Picked                 // by Conditions.Pick
	QueueFull              // by the queue before the transmitter
	TooLarge               // larger than the path's MTU
	Down                   // by Conditions.Down
	Overrun                // by the emulator's own bound of packets
	Refused                // by the host, whose interface is down
	causes
)

func (c Cause) String() string {
	return [...]string{"lost", "picked", "queue full", "too large", "down", "overrun", "refused"}[c]
}

// Counters counts the packets of one direction. Every packet is accounted for:
// In + Fragments + Duplicated = Forwarded + Dropped + Held.
type Counters struct {
	In, Forwarded uint64
	Fragments     uint64 // additional packets caused by fragmentation
	Duplicated    uint64
	Reordered     uint64
	Dropped       [causes]uint64
	Held          int // packets in the link now
}
