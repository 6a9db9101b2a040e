package ib

import "sync/atomic"

// Stats are a link's counters since it was opened.
type Stats struct {
	FramesReceived, BytesReceived uint64
	Requests, Posts               uint64 // work requests posted to send, and the calls that did
	Copied                        uint64 // frames that had to be copied into a block
	Gathered                      uint64 // frames whose payload went from memory of Allocate
	PlainAcquires                 uint64 // frames that Acquire found no block for
	Replaced                      uint64 // waiting frames that a newer one of their value replaced
	Dropped                       uint64 // asynchronous frames, of which too many waited
	Discarded                     uint64 // frames of connections that were down
	SendFull                      uint64 // Sends cut short because too many frames waited
	Lost                          uint64 // asynchronous frames that never came
	CreditsAlone, Probes          uint64 // messages without a frame
	Written, Unannounced          uint64 // frames written into windows; of them without notice
	Stale                         uint64 // notices of slots with nothing newer in them
	Torn                          uint64 // slots found with a frame that was not whole
	Malformed                     uint64 // messages that no link sends
	Failures, Reconnects          uint64 // of connections
	Waits                         uint64 // times that a receiver began to wait at the channel
	ProgressTicks                 uint64 // times that a timer looked after what waits
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

// Stats returns the counters; it may be called at any time.
func (l *Link) Stats() Stats {
	c := &l.count
	s := Stats{
		FramesReceived: c.framesReceived.Load(), BytesReceived: c.bytesReceived.Load(),
		Requests: c.requests.Load(), Posts: c.posts.Load(), Copied: c.copied.Load(), Gathered: c.gathered.Load(), PlainAcquires: c.plain.Load(),
		Replaced: c.replaced.Load(), Dropped: c.dropped.Load(), Discarded: c.discarded.Load(),
		SendFull: c.full.Load(), Lost: c.lost.Load(), CreditsAlone: c.creditsAlone.Load(), Probes: c.probes.Load(),
		Written: c.written.Load(), Unannounced: c.unannounced.Load(), Stale: c.stale.Load(), Torn: c.torn.Load(),
		Malformed: c.malformed.Load(),
		Failures:  c.failures.Load(), Reconnects: c.reconnects.Load(), Waits: c.waits.Load(), ProgressTicks: c.progressTicks.Load(), FreeBlocks: l.memory.freeBlocks(),
	}
	l.mu.Lock()
	s.Peers = len(l.named)
	l.mu.Unlock()
	return s
}
