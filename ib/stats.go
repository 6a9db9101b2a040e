package ib

import "sync/atomic"

// Stats holds a link's counters since it was opened.
type Stats struct {
	FramesReceived, BytesReceived uint64
	Requests, Posts               uint64 // send requests, and calls that posted them
	Copied                        uint64 // frames copied into a block
	Gathered                      uint64 // frames whose body was read from memory of Allocate
	PlainAcquires                 uint64 // frames for which Acquire found no block
	Replaced                      uint64 // queued frames replaced by a newer one of their value
	Dropped                       uint64 // asynchronous frames dropped because the queue was full
	Discarded                     uint64 // frames of connections that were down
	SendFull                      uint64 // calls of Send cut short because a queue was full
	Lost                          uint64 // asynchronous frames that the network lost
	CreditsAlone, Probes          uint64 // messages without a frame
	Written, Unannounced          uint64 // frames written into windows; those without a notice
	Stale                         uint64 // notices of slots without a newer frame
	Torn                          uint64 // slots read while their frame was incomplete
	Malformed                     uint64 // messages of no known format
	Failures, Reconnects          uint64 // of connections
	Waits                         uint64 // waits of receivers at the completion channel
	ProgressTicks                 uint64 // runs of the progress timer
	Peers                         int
	FreeBlocks                    int // of SendBlocks
}

type counters struct {
	framesReceived, bytesReceived, requests, posts        atomic.Uint64
	copied, gathered, plain, replaced, dropped, discarded atomic.Uint64
	full, lost, creditsAlone, probes                      atomic.Uint64
	written, unannounced, stale, torn                     atomic.Uint64
	malformed, failures, reconnects, waits, progressTicks atomic.Uint64
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	c := &l.count
	s := Stats{
		FramesReceived: c.framesReceived.Load(), BytesReceived: c.bytesReceived.Load(),
		Requests: c.requests.Load(), Posts: c.posts.Load(),
		Copied: c.copied.Load(), Gathered: c.gathered.Load(), PlainAcquires: c.plain.Load(),
		Replaced: c.replaced.Load(), Dropped: c.dropped.Load(), Discarded: c.discarded.Load(),
		SendFull: c.full.Load(), Lost: c.lost.Load(), CreditsAlone: c.creditsAlone.Load(), Probes: c.probes.Load(),
		Written: c.written.Load(), Unannounced: c.unannounced.Load(), Stale: c.stale.Load(), Torn: c.torn.Load(),
		Malformed: c.malformed.Load(), Failures: c.failures.Load(), Reconnects: c.reconnects.Load(),
		Waits: c.waits.Load(), ProgressTicks: c.progressTicks.Load(), FreeBlocks: l.memory.freeBlocks(),
	}
	l.mu.Lock()
	s.Peers = len(l.named)
	l.mu.Unlock()
	return s
}
