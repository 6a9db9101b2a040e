package driver

import "log/slog"

// Refusal counts what was refused for one reason.
type Refusal struct {
	Reason string
	Count  uint64
	// Suspicious is set for reasons that no peer of a run causes, whatever the network does to its frames:
	// there is an attacker, or a fault.
	Suspicious bool
}

// Refusals returns the counts of everything that was refused, in a fixed order, without zero counts.
func (s *Stats) Refusals() []Refusal {
	all := []Refusal{
		{"frame.malformed", s.FramesMalformed, true},
		{"frame.run", s.FramesOtherRun, true},
		{"frame.session", s.FramesUnknown, false}, // late frames of a closed session, too
		{"frame.epoch", s.FramesOtherEpoch, false},
		{"frame.unprotected", s.FramesUnprotected, true},
		{"frame.forged", s.FramesForged, true},
		{"frame.replayed", s.FramesReplayed, false}, // networks duplicate frames
		{"frame.old", s.FramesBeforeWindow, false},
		{"control.malformed", s.ControlMalformed, true},
		{"control.garbage", s.ControlGarbage, true},
		{"control.silent", s.HandshakesExpired, true},
		{"control.peer", s.PeersRefused, true},
		{"handshake.refused", s.HandshakesRefused, true},
		{"handshake.silent", s.HandshakesTimedOut, true},
		{"handshake.displaced", s.HandshakesDisplaced, true},
	}
	var out []Refusal
	for _, r := range all {
		if r.Count > 0 {
			out = append(out, r)
		}
	}
	return out
}

// logRefusals logs once what was refused, if any of it is suspicious.
func (n *Node) logRefusals() {
	s := n.Stats()
	suspicious := false
	var counts []any
	for _, r := range s.Refusals() {
		counts = append(counts, slog.Uint64(r.Reason, r.Count))
		suspicious = suspicious || r.Suspicious
	}
	if suspicious {
		n.log.Warn("refused what did not come from a peer of this run", counts...)
	}
}
