package p2psap

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// The context monitor. What open sessions measure is kept for each peer. When it clearly contradicts
// the conditions of a session's composition, the monitor proposes another one. It runs when frames
// arrive, so that an idle session costs nothing.

// MonitorConfig sets when the monitor proposes another composition. Each limit has a counterpart for
// the way back, so that a path between the two changes nothing. Zero fields take the defaults.
type MonitorConfig struct {
	// Dwell is the least time between two changes of a session that the monitors of either end
	// proposed (default 5 s). Changes that a user asked for neither wait nor count.
	Dwell time.Duration
	// RailDwell is how long a rail has to be up before sessions go back to it (default 1 s; longer
	// for one that goes down again and again).
	RailDwell time.Duration
	// FarAbove and NearBelow are round trips. FarAbove is by default 20 ms, more than the 2 MiB that
	// an intra-cluster column has in flight wait in a queue of 1 Gbit/s: a session's own queue must
	// not look like distance. NearBelow is by default NearRTT.
	FarAbove, NearBelow time.Duration
	// LossyAbove and CleanBelow are shares of frames (defaults 0.05 and 0.005).
	LossyAbove, CleanBelow float64
	// Declared also follows the distance of peers whose locality was declared, or is certain because both
	// ends are on one host. Loss is followed between all peers of different hosts.
	Declared bool
	// Off turns the monitor off.
	Off bool
}

// monitorEvery is the least time between two runs of the monitor for a session.
const monitorEvery = 50 * time.Millisecond

func (w *MonitorConfig) withDefaults() error {
	defaultTo(&w.Dwell, 5*time.Second)
	defaultTo(&w.RailDwell, time.Second)
	defaultTo(&w.FarAbove, 20*time.Millisecond)
	defaultTo(&w.NearBelow, NearRTT)
	defaultTo(&w.LossyAbove, 0.05)
	defaultTo(&w.CleanBelow, 0.005)
	if min(w.Dwell, w.RailDwell, w.NearBelow) < 0 || w.NearBelow > w.FarAbove ||
		w.CleanBelow < 0 || w.CleanBelow > w.LossyAbove {
		return fmt.Errorf("p2psap: limits of the monitor that contradict each other: %+v", *w)
	}
	return nil
}

// Classify returns the conditions that a path shows, given the present ones. It is pure: the present
// conditions are the whole state of the hysteresis.
func (w MonitorConfig) Classify(c Conditions, p PathMetrics) Conditions {
	far := c.Distance == Far || c.Distance == DistanceUnknown && !c.Locality.Intra()
	switch {
	case p.RTT == 0:
	case !far && p.RTT > w.FarAbove:
		c.Distance = Far
	case far && p.RTT < w.NearBelow:
		c.Distance = Near
	}
	c.Lossy = p.Loss > w.LossyAbove || c.Lossy && p.Loss >= w.CleanBelow
	return c
}

// monitorState is the state of the monitor for a session.
type monitorState struct {
	next    microproto.Instant // next run
	rest    microproto.Instant // until then the monitor proposes nothing
	refused Conditions         // that one of the ends cannot have
	bytes   uint64             // of messages at the last run
	at      microproto.Instant // last run; 0: none

	lossy    bool               // as of the last change
	theirs   bool               // the other end has found so: it also finds when that is over
	shares   bool               // this end has found so only because of the sessions that share the line
	clean    microproto.Instant // of the last change to a path without loss; 0: none
	relapses int                // times that loss came back soon after such a change
}

// maxRelapses bounds the pause after a change: 5 s become 11 min, as long as RFC 8899 §5.1.1 waits with longer frames.
const maxRelapses = 7

// pause returns how long the monitor proposes nothing after a change. Congestion control prevents the loss that would
// show that it is needed: each time that loss comes back soon without it, it stays twice as long.
func (m *monitorState) pause(now microproto.Instant, lossy bool, dwell time.Duration) time.Duration {
	switch {
	case lossy == m.lossy:
		return dwell
	case !lossy:
		m.lossy, m.clean = false, now
		return dwell
	case m.clean == 0 || now.Sub(m.clean) > 2*dwell<<m.relapses:
		m.relapses = 0
	default:
		m.relapses = min(m.relapses+1, maxRelapses)
	}
	m.lossy = true
	return dwell << m.relapses
}

// sharedLine is the number of the node's sessions over Ethernet that need congestion control themselves.
type sharedLine struct {
	needs int
	found microproto.Instant // when they were counted; 0: never
}

// sharesLine reports whether an asynchronous session shares the node's line with others that need congestion control.
// Without it, the session fills its receiver's port of the switch, and the congestion control of the others leaves it the
// whole line.
func (n *Node) sharesLine(now microproto.Instant, s *session) bool {
	if s.conditions.Mode != microproto.ModeAsynchronous || s.conditions.Network != Ethernet {
		return false
	}
	if l := &n.line; l.found == 0 || now.Sub(l.found) >= monitorEvery {
		*l = sharedLine{found: now}
		for _, o := range n.sessions {
			if o.needsControl() {
				l.needs++
			}
		}
	}
	if s.needsControl() {
		return n.line.needs > 1
	}
	return n.line.needs > 0
}

// needsControl reports whether an open session needs congestion control because its own path is far or loses frames, as this end
// or the other one has found.
func (s *session) needsControl() bool {
	if s == nil || s.state != SessionOpen {
		return false
	}
	c := s.conditions
	c.Lossy = c.Lossy && !s.monitor.shares
	column, err := ColumnOf(c)
	return err == nil && !column.Intra && !column.InfiniBand
}

// located reports whether it needs no measurement where the other end is.
func (n *Node) located(p *peer) bool { return !n.config.Monitor.Declared && !p.evidence.Measurable() }

// onOneHost reports whether the other end is known to be on this host.
func (n *Node) onOneHost(s *session) bool {
	return n.located(s.peer) && s.conditions.Locality <= SameHost
}

// monitor runs the monitor for a session that a frame has arrived for.
func (n *Node) monitor(now microproto.Instant, s *session) {
	m := &s.monitor
	if now < m.next || n.config.Monitor.Off || s.channel == nil {
		return
	}
	m.next = now.Add(monitorEvery)
	s.measurePath(now)
	p := s.peer
	known, oneHost := n.located(p), n.onOneHost(s)
	if !oneHost {
		n.reportFrames(now, p)
	}
	if s.state == SessionOpen && s.channel.limited && n.raiseFrameLimit(now, s) {
		return
	}
	if now >= m.rest && n.keepToFrameLimit(now, s) {
		return
	}
	if s.state != SessionOpen || now < m.rest || oneHost {
		return
	}
	to := n.config.Monitor.Classify(s.conditions, p.metrics)
	m.shares = !to.Lossy && n.sharesLine(now, s)
	to.Lossy = to.Lossy || s.conditions.Lossy && m.theirs || m.shares
	if known { // between hosts the path may be congested all the same
		to.Distance = s.conditions.Distance
	}
	if to == s.conditions || to == m.refused {
		return
	}
	c, err := n.config.Policy.Compose(to)
	if err != nil || slices.Equal(c.Protocols, s.composition.Protocols) {
		return
	}
	if err := n.proposeConditions(now, s, to); err != nil && !errors.Is(err, ErrBusy) {
		m.refused = to // this end cannot
	}
}

// measurePath adds what a session has measured since the last run to the metrics of its path.
func (s *session) measurePath(now microproto.Instant) {
	m, p := &s.monitor, &s.peer.metrics
	s.updateCounters()
	rtt := valueOf(s.channel.cells.rtt)
	if least := s.channel.cells.minRTT; least != nil {
		rtt, *least = *least, 0
	}
	if rtt > 0 {
		p.RTT = s.peer.minRTT.Add(now, rtt)
	}
	bytes := s.info.BytesSent + s.info.BytesReceived
	if m.at != 0 {
		p.Rate += (float64(bytes-m.bytes)/now.Sub(m.at).Seconds() - p.Rate) / 4
	}
	m.bytes, m.at = bytes, now
}
