package software

import "sync/atomic"

// Counts are numbers of objects of a fabric, by kind, for tests.
type Counts [PinnedBytes + 1]int64

// Kinds of objects, and the bytes of all regions.
const (
	Devices = iota
	Domains
	Regions
	Channels
	Queues
	Pairs
	PinnedBytes
)

type counters [PinnedBytes + 1]atomic.Int64

func (c *counters) read() (out Counts) {
	for i := range c {
		out[i] = c[i].Load()
	}
	return out
}

func (f *Fabric) countOpened(kind int) {
	f.live[kind].Add(1)
	f.made[kind].Add(1)
}

func (f *Fabric) countClosed(kind int) { f.live[kind].Add(-1) }

// Live counts the open objects: all 0 if nothing has leaked.
func (f *Fabric) Live() Counts { return f.live.read() }

// Made counts all objects ever opened.
func (f *Fabric) Made() Counts { return f.made.read() }

// Lost counts packets and acknowledgements that were lost: by a rule, at a port that is down, or
// because no pair accepted them.
func (f *Fabric) Lost() int64 { return f.lost.Load() }

// Resent counts how often an RC pair went back to an earlier packet.
func (f *Fabric) Resent() int64 { return f.resent.Load() }
