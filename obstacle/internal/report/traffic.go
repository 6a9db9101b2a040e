package report

import (
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Traffic sums up the halo sessions of a run.
type Traffic struct {
	Messages, Bytes, Segments uint64 // sent
	Retransmitted             uint64 // segments
	Replaced                  uint64 // asynchronous messages that newer ones replaced before they were read

	segmentsIn   uint64
	unreceived   int64 // synchronous messages
	asynchronous bool
}

// Add adds the sessions of one end.
func (t *Traffic) Add(sessions []rendezvous.Session) {
	for _, h := range sessions {
		if !strings.HasPrefix(h.Name, rendezvous.HaloPrefix) {
			continue
		}
		t.Messages += h.MessagesSent
		t.Bytes += h.BytesSent
		t.Segments += h.SegmentsSent
		t.Retransmitted += h.Retransmitted
		t.Replaced += h.Overwritten
		t.segmentsIn += h.SegmentsReceived
		if h.Mode == "sync" {
			t.unreceived += int64(h.MessagesSent) - int64(h.MessagesReceived)
		} else {
			t.asynchronous = true
		}
	}
}

// SegmentsLost returns the number of segments that were sent and not received: they are lost or in transit.
func (t *Traffic) SegmentsLost() uint64 { return t.Segments - min(t.segmentsIn, t.Segments) }

// MessagesLost returns the number of messages that were sent and not received: they are lost or in transit. A message
// of an asynchronous session is lost with any of its segments. A message that a newer one replaced is not lost.
func (t *Traffic) MessagesLost() uint64 {
	if t.asynchronous {
		return min(t.SegmentsLost(), t.Messages)
	}
	return uint64(max(t.unreceived, 0))
}
