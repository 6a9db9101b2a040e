package report

import (
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Traffic sums up the halo sessions of a run: messages sent in all epochs, and losses in the newest epoch.
type Traffic struct {
	rendezvous.Traffic

	current      uint64 // segments sent in the newest epoch
	messages     uint64 // likewise
	segmentsIn   uint64
	unreceived   int64 // synchronous messages
	asynchronous bool
}

// Add adds the sessions of one end, and what it has sent in former epochs.
func (t *Traffic) Add(sessions []rendezvous.Session, former rendezvous.Traffic) {
	t.Traffic.Add(former)
	for i := range sessions {
		h := &sessions[i]
		if !t.AddSession(h) {
			continue
		}
		t.current += h.SegmentsSent
		t.messages += h.MessagesSent
		t.segmentsIn += h.SegmentsReceived
		if h.Mode == "sync" {
			t.unreceived += int64(h.MessagesSent) - int64(h.MessagesReceived)
		} else {
			t.asynchronous = true
		}
	}
}

// SegmentsLost returns the number of segments that were sent and not received: they are lost or in transit.
func (t *Traffic) SegmentsLost() uint64 { return t.current - min(t.segmentsIn, t.current) }

// MessagesLost returns the number of messages that were sent and not received: they are lost or in transit. A message
// of an asynchronous session is lost with any of its segments. A message that a newer one replaced is not lost.
func (t *Traffic) MessagesLost() uint64 {
	if t.asynchronous {
		return min(t.SegmentsLost(), t.messages)
	}
	return uint64(max(t.unreceived, 0))
}
