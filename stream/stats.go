package stream

import "sync/atomic"

// Stats holds a link's counters since it was opened.
type Stats struct {
	Reads     uint64 // system calls that received bytes
	Writes    uint64 // system calls that sent bytes
	Moved     uint64 // bytes of frames that were copied because they did not fit into the rest of a buffer
	Waits     uint64 // waits of receivers
	SendFull  uint64 // calls of Send cut short because a connection was full
	Discarded uint64 // frames to connections that were down
	Failures  uint64 // of connections
	Refused   uint64 // connections to the listener without a right to one
}

// counters are the counters of Stats by their names there.
type counters struct {
	Reads, Writes, Moved, Waits, SendFull, Discarded, Failures, Refused atomic.Uint64
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	c := &l.count
	return Stats{
		Reads: c.Reads.Load(), Writes: c.Writes.Load(), Moved: c.Moved.Load(), Waits: c.Waits.Load(),
		SendFull: c.SendFull.Load(), Discarded: c.Discarded.Load(), Failures: c.Failures.Load(), Refused: c.Refused.Load(),
	}
}
