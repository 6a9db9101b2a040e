package software

import "sync/atomic"

// Counts are numbers of objects of a fabric, for tests.
type Counts struct {
	Devices, Domains, Regions, Channels, Queues, Pairs int64
	PinnedBytes                                        int64
}

type counters struct {
	devices, domains, regions, channels, queues, pairs atomic.Int64
}

func (c *counters) read() Counts {
	return Counts{
		Devices: c.devices.Load(), Domains: c.domains.Load(), Regions: c.regions.Load(),
		Channels: c.channels.Load(), Queues: c.queues.Load(), Pairs: c.pairs.Load(),
	}
}

// Live counts the open objects: all 0 if nothing has leaked.
func (f *Fabric) Live() Counts {
	c := f.live.read()
	c.PinnedBytes = f.pinned.Load()
	return c
}

// Made counts all objects ever opened.
func (f *Fabric) Made() Counts { return f.made.read() }

// Lost counts packets and acknowledgements that were lost: by a rule, at a port that is down, or
// because no pair accepted them.
func (f *Fabric) Lost() int64 { return f.lost.Load() }

// Resent counts how often an RC pair went back to an earlier packet.
func (f *Fabric) Resent() int64 { return f.resent.Load() }
