package p2psap

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// How many round trips of the control channel are measured when a peer answers. A
// process may be woken late on a busy host, so the smallest counts, and a path that
// looks far is tried more often than one that looks near. Where a round trip takes long
// fewer do; one that took a second may still have been a process that was woken late.
const (
	fewestSamples = 4
	mostSamples   = 16
	measureTime   = 250 * time.Millisecond // after it, fewestSamples do
	longMeasure   = time.Second            // after it, two do, and after twice as long one
)

// measurement is how far a peer is. Each end measures for itself; when the result
// decides on the locality, each tells the other its smallest round trip, and both take
// the smaller of the two: so they cannot disagree.
type measurement struct {
	number  uint64             // of the last ping
	sent    microproto.Instant // 0: no ping is on its way
	began   microproto.Instant
	until   microproto.Instant // for the next pong, or the other end's word
	samples int
	least   time.Duration // 0: none yet
	seems   time.Duration // what a round trip seems to take, before there is a sample; 0: not known
	told    bool          // the other end has been told
	theirs  time.Duration
	heard   bool // theirs has come
}

func (m *measurement) done(now microproto.Instant) bool {
	took := now.Sub(m.began)
	return m.samples >= fewestSamples && (m.least <= NearRTT || m.samples >= mostSamples || took >= measureTime) ||
		m.samples > 1 && took >= longMeasure || m.samples > 0 && took >= 2*longMeasure
}

// seem notes what a round trip seems to take: how long an answer took that need not have
// been given at once, or how long a ping has been under way.
func (m *measurement) seem(rtt time.Duration) { m.seems = max(m.seems, rtt) }

// initialTimeout is the retransmission time-out before the first measurement of a
// session between clusters, 0: the default, a second. The control channel's round trip
// takes the place of that of TCP's SYN: RFC 6298 §2.2 makes three times as much of it. A
// first flight that timed out before it could be acknowledged would leave the congestion
// window's threshold at two segments (RFC 5681 §3.1).
func (m *measurement) initialTimeout() time.Duration {
	rtt := m.least
	if rtt == 0 {
		rtt = m.seems
	}
	if 3*rtt <= time.Second {
		return 0
	}
	return min(3*rtt, InterRTOMax)
}

// goOnMeasuring pings, or tells the other end what has come out. A ping that was lost
// with its connection is sent again over the next one.
func (n *Node) goOnMeasuring(now microproto.Instant, p *peer) {
	m := &p.measure
	switch {
	case !p.evidence.addressed() || p.conn == nil:
		return
	case m.done(now):
		if p.state == PeerNew && p.evidence.undecided() && !m.told {
			m.told = true
			n.post(p, kindMeasured, &measured{uint64(m.least)})
			n.rise(p)
		}
		return
	}
	if m.number == 0 {
		m.began = now
	}
	m.number++
	m.sent = now
	n.transmit(p, n.encode(p, kindPing, 0, &echo{m.number}))
}

// takePong: the peer answers a ping.
func (n *Node) takePong(now microproto.Instant, p *peer, e echo) {
	m := &p.measure
	if m.sent == 0 || e.Number != m.number {
		n.counters.ControlDuplicate++
		return
	}
	rtt := min(max(now.Sub(m.sent), 1), maxRTT)
	m.sent, m.until = 0, now.Add(n.config.Handshake)
	m.samples++
	if m.least == 0 || rtt < m.least {
		m.least = rtt
	}
	n.goOnMeasuring(now, p)
}

// takeMeasured: the peer has measured.
func (n *Node) takeMeasured(p *peer, d measured) {
	m := &p.measure
	if !m.heard {
		m.heard, m.theirs = true, time.Duration(d.Least)
		n.rise(p)
	}
}

// rise makes a peer of one that has said hello, once its locality is known at both
// ends.
func (n *Node) rise(p *peer) {
	m := &p.measure
	if p.state != PeerNew || p.conn == nil {
		return
	}
	for _, w := range p.ways {
		if !w.settled {
			return
		}
	}
	if p.evidence.undecided() {
		if !m.told || !m.heard {
			return
		}
		p.evidence.RTT = min(m.least, m.theirs)
	}
	p.finding = Locate(p.evidence)
	p.locality = p.finding.Locality
	p.state = PeerUp
	n.out = append(n.out, Output{Kind: OutPeerUp, Peer: p.name})
}

// unmeasured ends a connection with a peer that answers no ping, or does not tell what it
// has measured, for Handshake: the next one may be better.
func (n *Node) unmeasured(now microproto.Instant, p *peer) {
	if p.state == PeerNew && p.conn != nil && now >= p.measure.until {
		n.counters.HandshakesExpired++
		n.hangup(now, p.conn, fmt.Errorf("p2psap: peer %q has not measured its distance: nothing of it has come for %v", p.name, n.config.Handshake))
	}
}

// Finding tells where a peer is and why that is believed; zero before it has
// answered. Its RTT is the smallest that was measured over the control channel.
func (n *Node) Finding(name string) Finding {
	if p := n.peer(name); p != nil {
		return p.found()
	}
	return Finding{}
}

func (p *peer) found() Finding {
	f := p.finding
	if f.Locality != 0 && f.RTT == 0 {
		f.RTT = p.measure.least
	}
	return f
}

func (n *Node) place(host string) Placement {
	c := &n.config
	return Placement{Host: host, Process: c.Process, Cluster: c.Cluster, Addresses: c.Addresses}
}

func (h *hello) place() Placement {
	return Placement{Host: h.Host, Process: h.Process, Cluster: h.Cluster, Addresses: h.Addresses}
}

func (e *echo) append(w *writer) { w.u64(e.Number) }

func parseEcho(r *reader, k controlKind) (echo, error) {
	e := echo{r.u64()}
	return e, r.end(k)
}

func (d *measured) append(w *writer) { w.u64(d.Least) }

func parseMeasured(r *reader) (measured, error) {
	d := measured{r.u64()}
	if err := r.end(kindMeasured); err != nil {
		return measured{}, err
	}
	if d.Least == 0 || d.Least > uint64(maxRTT) {
		return measured{}, fmt.Errorf("%w: a smallest round trip of %d ns", ErrMalformed, d.Least)
	}
	return d, nil
}

// prefix writes an address and its network: its length (4 or 16), the prefix's bits,
// the address.
func (w *writer) prefix(p netip.Prefix) {
	ip := p.Addr().AsSlice()
	w.u8(uint8(len(ip)))
	w.u8(uint8(p.Bits()))
	*w = append(*w, ip...)
}

func (r *reader) prefix() netip.Prefix {
	size, bits := int(r.u8()), int(r.u8())
	if size != 4 && size != 16 {
		r.bad = true
		return netip.Prefix{}
	}
	ip, ok := netip.AddrFromSlice(r.take(size))
	if !ok || ip.Is4In6() || bits > ip.BitLen() {
		r.bad = true
		return netip.Prefix{}
	}
	return netip.PrefixFrom(ip, bits)
}
