package rendezvous

// HaloPrefix begins the names of sessions that carry halos.
const HaloPrefix = "halo/"

// Channel is what the program's answer and a peer's account say of a session in the
// same words.
type Channel struct {
	Name         string   `json:"name"`
	Mode         string   `json:"mode"`
	Locality     string   `json:"locality"`
	Why          string   `json:"why"` // it has this locality
	Network      string   `json:"network"`
	NetworkWhy   string   `json:"network_why,omitempty"` // where the peers have several
	Moves        uint32   `json:"moves"`                 // from network to network, since it was opened
	Device       string   `json:"device,omitempty"`      // of this end, on InfiniBand
	Column       string   `json:"column"`                // of Table I
	Composition  []string `json:"composition"`
	Protection   []string `json:"protection"` // the composite below it; empty: none
	Epoch        int      `json:"epoch"`
	Changes      uint32   `json:"changes"`            // of composition, since it was opened
	PauseSeconds float64  `json:"last_pause_seconds"` // of the last change
	Distance     string   `json:"distance,omitempty"` // "near" or "far", when the monitor has found it to be other than the locality says
	Lossy        bool     `json:"lossy"`              // the monitor has found that much is lost
	PathLoss     float64  `json:"path_loss"`          // share of segments sent again
	SegmentBytes int      `json:"segment_bytes"`

	MessagesSent     uint64 `json:"messages_sent"`
	MessagesReceived uint64 `json:"messages_received"`
	BytesSent        uint64 `json:"bytes_sent"`
	BytesReceived    uint64 `json:"bytes_received"`
	SegmentsSent     uint64 `json:"segments_sent"`
	SegmentsReceived uint64 `json:"segments_received"`
	Retransmitted    uint64 `json:"retransmitted"`
}

// Session is one session of a peer, in that peer's view.
type Session struct {
	Peer int `json:"peer"` // rank of the other end; -1: not a peer of the run
	Channel
	RTTSeconds  float64 `json:"rtt_seconds"`      // smallest measured over the control channel; 0: not measured
	PathRTT     float64 `json:"path_rtt_seconds"` // as the sessions with that peer measure it; 0: not measured
	Dropped     uint64  `json:"dropped"`
	Overwritten uint64  `json:"overwritten"`
}
