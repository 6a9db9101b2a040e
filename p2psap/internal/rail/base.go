package rail

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// Base is the path over the base rail. Frames pass on it as soon as the peer is known, so it has no rounds. A firewall
// or a NAT may stop its frames while the control connection works. Each end therefore judges the direction from it, by
// the frames that the other end says have arrived, and announces what it finds. The path is down while one of the ends
// finds so.
type Base struct {
	Reason string             // why it is down; "": it is up
	Downs  uint64             // times that it went down
	Since  microproto.Instant // while it is down: when this end first sent in vain, or was told so

	flow        flow
	here, there string // why it is down, as this end and the other one have found
	upAt        microproto.Instant
	fresh       bool // it came up, and was not steady since
}

// Down reports whether the path carries nothing in one of its directions.
func (b *Base) Down() bool { return b.Reason != "" }

// Sent notes that a frame is sent.
func (b *Base) Sent(now microproto.Instant) {
	if b.flow.since == 0 {
		b.flow.since = now
	}
}

// flow judges whether frames arrive at the other end.
type flow struct {
	since   microproto.Instant // when the first frame was sent after arrived rose; 0: none was
	sent    uint64             // frames, when arrived last rose
	arrived uint64             // frames, by the last heartbeat
	heard   microproto.Instant // arrival of the last heartbeat
}

const (
	// silentBeats is the time in heartbeats for which nothing of what was sent has arrived when a path is down. Between
	// two heartbeats that report so, frames that were under way at the first have arrived.
	silentBeats = 1.5
	// vainFrames is the least number of frames that were sent in vain then. Where 30 of 100 frames are lost at random,
	// so many in a row are lost once in 15,000 times.
	vainFrames = 8
	// flowProbes is the number of frames that this end sends at each heartbeat while nothing arrives.
	flowProbes = 4
)

// take takes a heartbeat: the number of frames that were sent and that have arrived by now, beat apart from the next
// one. It returns for how long and how many frames were sent in vain, and whether any has arrived since the last one.
func (f *flow) take(now microproto.Instant, beat time.Duration, sent, arrived uint64) (vain time.Duration, frames uint64,
	progress bool) {
	interrupted := now.Sub(f.heard) > 2*beat // nothing passed at all, or one of the processes was stopped
	f.heard = now
	switch {
	case arrived != f.arrived:
		f.arrived, f.sent, f.since = arrived, sent, 0
		return 0, 0, true
	case f.since == 0 || sent <= f.sent:
		return 0, 0, false
	case interrupted:
		f.sent, f.since = sent, now
		return 0, 0, false
	}
	return now.Sub(f.since), sent - f.sent, false
}

// HeardBase judges the base path by a heartbeat of the peer: the numbers of frames that were sent to it, and of those
// that it says have arrived. beat is the interval of heartbeats, rtt the round trip. It returns how many frames to send
// so that the next heartbeats show whether the path carries any.
func (s *Paths) HeardBase(now microproto.Instant, beat, rtt time.Duration, sent, arrived uint64) (probes int) {
	b := &s.Base
	vain, frames, progress := b.flow.take(now, beat, sent, arrived)
	switch {
	case b.here != "" && progress:
		b.here = ""
		s.announceBase(now, now)
	case b.here != "":
		return flowProbes
	case vain >= time.Duration(silentBeats*float64(beat))+2*rtt && frames >= vainFrames:
		b.here = fmt.Sprintf("%v carries nothing from %s to %s: %d frames were sent in %v and none has arrived, while the "+
			"control connection works; a firewall or a NAT may drop them", s.Config.Base.Network, s.Node, s.Peer, frames,
			vain.Round(100*time.Millisecond))
		s.announceBase(now, b.flow.since)
		return flowProbes
	case vain >= beat/2:
		return flowProbes
	}
	return 0
}

// announceBase announces what this end has found.
func (s *Paths) announceBase(now, since microproto.Instant) {
	b := &s.Base
	m := control.PathState{Network: s.Config.Base.Network, Round: 1, Stage: control.Ready}
	if b.here != "" {
		b.here = b.here[:min(len(b.here), control.MaxReason)]
		m.Stage, m.Reason = control.Down, b.here
	}
	s.Host.Announce(&m)
	s.changeBase(now, since)
}

// receiveBase takes what the other end has found.
func (s *Paths) receiveBase(now microproto.Instant, m *control.PathState) error {
	switch b := &s.Base; m.Stage {
	case control.Down:
		b.there = "the peer says: " + m.Reason
	case control.Ready:
		b.there = ""
	default:
		return fmt.Errorf("%w: an offer of the base rail %v", control.ErrMalformed, m.Network)
	}
	s.changeBase(now, now)
	return nil
}

// changeBase brings the state of the base path up to date. Paths that are to be used only while it is down connect.
func (s *Paths) changeBase(now, since microproto.Instant) {
	b := &s.Base
	was := b.Reason
	if b.Reason = b.here; b.Reason == "" {
		b.Reason = b.there
	}
	switch {
	case was == "" && b.Reason != "":
		b.Downs++
		b.Since, b.fresh = since, false
		for _, p := range s.List {
			if p.Rail.Standby && !p.offered && p.retry == microproto.Never && p.Rail.Err == nil {
				p.retry = now
			}
		}
		s.Host.BaseDown(now)
	case was != "" && b.Reason == "":
		b.upAt, b.fresh = now, true
		s.Host.BaseUp(now)
	}
}

// maxBaseDwells bounds the time that the base path has to be up before sessions go back to it, as a power of 2.
const maxBaseDwells = 6

// steadyBase returns when sessions may go back to the base path after it came up.
func (s *Paths) steadyBase() microproto.Instant {
	return s.Base.upAt.Add(s.Dwell << min(s.Base.Downs-1, maxBaseDwells))
}
