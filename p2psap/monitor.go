package p2psap

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// The context monitor. What sessions measure while they are at work is gathered for
// each peer; when it contradicts the conditions under which a session was composed, and
// has done so clearly, the session is given another composition. It looks when frames
// come, so that an idle session costs nothing.

// Path is what has been measured of the way to a peer. Loss and rate are exponentially
// weighted: a new figure counts a quarter.
type PathMetrics struct {
	RTT  time.Duration // of segments and their acknowledgements, the smallest of the last second; 0: not measured
	Loss float64       // share of segments that had to be sent again
	Rate float64       // bytes a second that messages have taken, both ways
}

// Watch says when the monitor asks for another composition. Each limit has a partner
// for the way back, so that a context between the two changes nothing. Zero fields take
// the defaults.
type MonitorConfig struct {
	// Dwell is the least time between two changes of a session that monitors asked
	// for, at either end (default 5 s). A scheme's changes neither wait nor count.
	Dwell time.Duration
	// RailDwell is how long a rail has to be up before sessions go back to it (default
	// 1 s; longer for one that goes down again and again).
	RailDwell time.Duration
	// FarAbove and NearBelow are round trips. Defaults: 20 ms, more than the 2 MiB
	// that an intra-cluster column has under way wait in a queue of 1 Gbit/s, so that
	// a session's own queue is not taken for distance; and NearRTT.
	FarAbove, NearBelow time.Duration
	// LossyAbove and CleanBelow are shares of segments (defaults 0.05 and 0.005).
	LossyAbove, CleanBelow float64
	// Declared sessions are watched too: those whose locality was declared, or is
	// known for sure because both ends are on one host.
	Declared bool
	// Off turns the monitor off.
	Off bool
}

// watchEvery is the least time between two looks at a session.
const watchEvery = 50 * time.Millisecond

// leastSegments must have been sent for their loss to mean something.
const leastSegments = 40

func (w *MonitorConfig) withDefaults() error {
	defaultTo(&w.Dwell, 5*time.Second)
	defaultTo(&w.RailDwell, time.Second)
	defaultTo(&w.FarAbove, 20*time.Millisecond)
	defaultTo(&w.NearBelow, NearRTT)
	defaultTo(&w.LossyAbove, 0.05)
	defaultTo(&w.CleanBelow, 0.005)
	if w.Dwell < 0 || w.RailDwell < 0 || w.NearBelow < 0 || w.NearBelow > w.FarAbove || w.CleanBelow < 0 || w.CleanBelow > w.LossyAbove {
		return fmt.Errorf("p2psap: a watch whose limits do not fit together: %+v", *w)
	}
	return nil
}

// Judge tells what conditions a path shows, given the present ones. It is pure: the
// present conditions are all the memory that the hysteresis has.
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

// leastWindow is how long a round trip counts. What a session's own segments wait in
// queues is no distance, and a second shows a queue empty once; a longer window would be
// late to see that the path has become longer (compare RFC 8985, min_RTT).
const leastWindow = time.Second

// leastRTT is a windowed minimum, in two halves.
type leastRTT struct {
	began         microproto.Instant // of the present half
	now, previous time.Duration      // 0: nothing came
}

// add takes a measurement and gives the smallest that counts.
func (l *leastRTT) add(now microproto.Instant, rtt time.Duration) time.Duration {
	switch age := now.Sub(l.began); {
	case age >= leastWindow:
		l.began, l.now, l.previous = now, 0, 0
	case age >= leastWindow/2:
		l.began, l.now, l.previous = now, 0, l.now
	}
	if l.now == 0 || rtt < l.now {
		l.now = rtt
	}
	if l.previous != 0 {
		return min(l.now, l.previous)
	}
	return l.now
}

// watched is what the monitor remembers of a session.
type watched struct {
	next     microproto.Instant // look
	changed  microproto.Instant // the last change that a monitor asked for; 0: none
	refused  Conditions         // that one of the ends cannot have
	segments uint64             // sent when the monitor last took a share of them
	again    uint64             // of which again
	bytes    uint64             // of messages at the last look
	at       microproto.Instant // of which
}

// monitor looks at a session that a frame has come for.
func (n *Node) monitor(now microproto.Instant, s *session) {
	w := &s.watched
	if now < w.next || n.config.Monitor.Off {
		return
	}
	w.next = now.Add(watchEvery)
	n.measurePath(now, s)
	p := s.peer
	if s.state == SessionOpen && s.channel.short && n.raise(now, s) {
		return
	}
	if s.state != SessionOpen || !n.config.Monitor.Declared && !p.evidence.undecided() ||
		w.changed != 0 && now.Sub(w.changed) < n.config.Monitor.Dwell {
		return
	}
	to := n.config.Monitor.Classify(s.conditions, p.path)
	if to == s.conditions || to == w.refused {
		return
	}
	c, err := n.config.Policy.Compose(to)
	if err != nil || slices.Equal(c.Protocols, s.composition.Protocols) {
		return
	}
	switch err := n.wish(now, s, to); {
	case err == nil:
		w.changed = now
	case !errors.Is(err, microproto.ErrBusy):
		w.refused = to // this end cannot
	}
}

// measurePath adds what a session has seen since the last look to what is known of its
// path.
func (n *Node) measurePath(now microproto.Instant, s *session) {
	w, p := &s.watched, &s.peer.path
	s.tally()
	rtt := valueOf(s.channel.cells.rtt)
	if least := s.channel.cells.minRTT; least != nil {
		rtt, *least = *least, 0
	}
	if rtt > 0 {
		p.RTT = s.peer.least.add(now, rtt)
	}
	if sent := s.info.SegmentsSent - w.segments; sent >= leastSegments {
		if s.channel.mode() == microproto.ModeSynchronous {
			p.Loss += (float64(s.info.Retransmitted-w.again)/float64(sent) - p.Loss) / 4
		}
		w.segments, w.again = s.info.SegmentsSent, s.info.Retransmitted
	}
	bytes := s.info.BytesSent + s.info.BytesReceived
	if w.at != 0 {
		p.Rate += (float64(bytes-w.bytes)/now.Sub(w.at).Seconds() - p.Rate) / 4
	}
	w.bytes, w.at = bytes, now
}

// monitorOver notes how a change that a monitor asked for has ended.
func (s *session) monitorOver(now microproto.Instant, to Conditions, err error) {
	s.watched.changed = now
	if err != nil {
		s.watched.refused = to
	}
}
