package shm

import "sync/atomic"

// Stats holds a link's counters since it was opened.
type Stats struct {
	Written   uint64 // frames written into slots
	InPlace   uint64 // frames whose bodies were not copied; see Reserve
	Dropped   uint64 // asynchronous frames dropped because a lane was full
	Discarded uint64 // frames of connections that were down
	SendFull  uint64 // calls of Send cut short because a lane was full
	Bells     uint64 // times that the other end was asleep and was woken
	Waits     uint64 // waits of receivers
	Failures  uint64 // of connections
	Refused   uint64 // connections to the socket without a right to one
	Peers     int
}

// counters are the counters of Stats by their names there.
type counters struct {
	Written, InPlace, Dropped, Discarded, SendFull, Bells, Waits, Failures, Refused atomic.Uint64
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	c := &l.count
	l.mu.Lock()
	peers := len(l.named)
	l.mu.Unlock()
	return Stats{
		Written: c.Written.Load(), InPlace: c.InPlace.Load(), Dropped: c.Dropped.Load(), Discarded: c.Discarded.Load(), SendFull: c.SendFull.Load(),
		Bells: c.Bells.Load(), Waits: c.Waits.Load(), Failures: c.Failures.Load(), Refused: c.Refused.Load(), Peers: peers,
	}
}
