package driver

// Refusal counts what was refused for one reason.
type Refusal struct {
	Reason string
	Count  uint64
	// Strange: no peer of a run does this by itself, whatever the network does to its
	// frames; somebody else is at work, or something is broken.
	Suspicious bool
}

// Refusals lists everything that was refused, each reason that has occurred once, in a
// fixed order.
func (s *Stats) Refusals() []Refusal {
	all := []Refusal{
		{"frame.malformed", s.FramesMalformed, true},
		{"frame.run", s.FramesOtherRun, true},
		{"frame.session", s.FramesUnknown, false}, // late ones of a session that is closed, too
		{"frame.epoch", s.FramesOtherEpoch, false},
		{"frame.unprotected", s.FramesUnprotected, true},
		{"frame.forged", s.FramesForged, true},
		{"frame.replayed", s.FramesReplayed, false}, // networks double frames
		{"frame.old", s.FramesBeforeWindow, false},
		{"control.malformed", s.ControlMalformed, true},
		{"control.garbage", s.ControlGarbage, true},
		{"control.silent", s.HandshakesExpired, true},
		{"control.peer", s.PeersRefused, true},
		{"stranger.refused", s.HandshakesRefused, true},
		{"stranger.silent", s.HandshakesTimedOut, true},
		{"stranger.crowded", s.HandshakesDisplaced, true},
	}
	var out []Refusal
	for _, r := range all {
		if r.Count > 0 {
			out = append(out, r)
		}
	}
	return out
}

// reportRefusals logs, once, what strangers did to this node.
func (n *Node) reportRefusals() {
	s := n.Stats()
	strange := false
	e := n.log.Warn().Str("node", n.config.Name)
	for _, r := range s.Refusals() {
		e = e.Uint64(r.Reason, r.Count)
		strange = strange || r.Suspicious
	}
	if strange {
		e.Msg("refused what did not come from a peer of this run")
	} else {
		e.Discard().Send()
	}
}
