package ib

import (
	"reflect"
	"sync/atomic"
)

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

// counters are the counters of Stats by their names there.
type counters struct {
	FramesReceived, BytesReceived, Requests, Posts                atomic.Uint64
	Copied, Gathered, PlainAcquires, Replaced, Dropped, Discarded atomic.Uint64
	SendFull, Lost, CreditsAlone, Probes                          atomic.Uint64
	Written, Unannounced, Stale, Torn                             atomic.Uint64
	Malformed, Failures, Reconnects, Waits, ProgressTicks         atomic.Uint64
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	s := Stats{FreeBlocks: l.memory.freeBlocks()}
	to := reflect.ValueOf(&s).Elem()
	for name, n := range reflect.ValueOf(&l.count).Elem().Fields() {
		to.FieldByName(name.Name).SetUint(n.Addr().Interface().(*atomic.Uint64).Load())
	}
	l.mu.Lock()
	s.Peers = len(l.named)
	l.mu.Unlock()
	return s
}
