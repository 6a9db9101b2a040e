package rendezvous

import "strings"

// HaloPrefix is the prefix of the names of sessions that carry halos.
const HaloPrefix = "halo/"

// Channel holds the properties of a session that both the answer of the program and the result of a peer list.
type Channel struct {
	Name         string   `json:"name"`
	Mode         string   `json:"mode"`
	Locality     string   `json:"locality"`
	Why          string   `json:"why"` // reason for this locality
	Network      string   `json:"network"`
	NetworkWhy   string   `json:"network_why,omitempty"` // reason for this network, if the peers share several
	PathDown     string   `json:"path_down,omitempty"`   // why its data path, or the one that it has left for kernel TCP, carries nothing
	Moves        uint32   `json:"moves"`                 // changes of the network since it was opened
	Device       string   `json:"device,omitempty"`      // of this end, on InfiniBand
	Column       string   `json:"column"`                // of Table I
	Composition  []string `json:"composition"`
	Protection   []string `json:"protection"` // composition of the composite that protects its frames; empty: none
	Epoch        int      `json:"epoch"`
	Changes      uint32   `json:"changes"`            // of the composition since it was opened
	PauseSeconds float64  `json:"last_pause_seconds"` // of the last change
	Distance     string   `json:"distance,omitempty"` // "near" or "far", if the monitor measured it
	Lossy        bool     `json:"lossy"`              // the monitor measured a high loss
	PathLoss     float64  `json:"path_loss"`          // share of segments that were retransmitted
	SegmentBytes int      `json:"segment_bytes"`
	FrameBytes   int      `json:"frame_bytes"` // of the largest frame, which the search for the path's MTU changes

	MessagesSent     uint64 `json:"messages_sent"`
	MessagesReceived uint64 `json:"messages_received"`
	BytesSent        uint64 `json:"bytes_sent"`
	BytesReceived    uint64 `json:"bytes_received"`
	SegmentsSent     uint64 `json:"segments_sent"`
	SegmentsReceived uint64 `json:"segments_received"`
	Retransmitted    uint64 `json:"retransmitted"`
}

// Session is a session as one of its peers sees it.
type Session struct {
	Peer int `json:"peer"` // rank of the other end; −1: not a peer of the run
	Channel
	RTTSeconds  float64 `json:"rtt_seconds"`      // minimum over the control channel; 0: not measured
	PathRTT     float64 `json:"path_rtt_seconds"` // as the sessions with that peer measure it; 0: not measured
	Dropped     uint64  `json:"dropped"`
	Overwritten uint64  `json:"overwritten"`
}

// Traffic sums what halo sessions have sent.
type Traffic struct {
	Messages      uint64 `json:"messages"`
	Bytes         uint64 `json:"bytes"`
	Segments      uint64 `json:"segments"`
	Retransmitted uint64 `json:"retransmitted"` // segments
	Replaced      uint64 `json:"replaced"`      // asynchronous messages that newer ones replaced before they were read
}

// Add adds other traffic.
func (t *Traffic) Add(o Traffic) {
	t.Messages += o.Messages
	t.Bytes += o.Bytes
	t.Segments += o.Segments
	t.Retransmitted += o.Retransmitted
	t.Replaced += o.Replaced
}

// AddSession adds what a session has sent, if it carries halos. It reports whether it does.
func (t *Traffic) AddSession(s *Session) bool {
	if !strings.HasPrefix(s.Name, HaloPrefix) {
		return false
	}
	t.Add(Traffic{s.MessagesSent, s.BytesSent, s.SegmentsSent, s.Retransmitted, s.Overwritten})
	return true
}
