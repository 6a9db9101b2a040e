package ether

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/ether/internal/route"
	"github.com/p2pdc/p2pdc/microproto"
)

// cables probes the routes to the peers that several cables lead to, and selects those in use.
type cables struct {
	l     *Link
	mu    sync.Mutex
	peers []*followed
	send  singleSend
	event func(microproto.LinkEvent)
	begun bool
	soon  chan struct{} // of capacity 1: a peer was added
	done  chan struct{}
	watch io.Closer // of the interfaces; nil: not watched
}

// followed is a peer with several routes.
type followed struct {
	*peer
	addr  microproto.LinkAddr
	table *route.Table
	shown []shown // as last reported
	inUse int
	heard uint32 // the newest round of the other end
}

type shown struct {
	known bool
	cause route.Cause
}

func (c *cables) init(l *Link) {
	c.l = l
	c.soon, c.done = make(chan struct{}, 1), make(chan struct{})
	c.send.init(l)
}

// Watch calls f when frames to a peer take another route, and when the state of a route changes: it implements
// microproto.Connected. The first events are those of peers that are accepted afterwards.
func (l *Link) Watch(f func(microproto.LinkEvent)) {
	l.cables.mu.Lock()
	defer l.cables.mu.Unlock()
	l.cables.event = f
}

// Forget ends the probes of routes to a peer. Its address stays.
func (l *Link) Forget(peer microproto.LinkAddr) {
	c := &l.cables
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers = slices.DeleteFunc(c.peers, func(f *followed) bool { return f.addr == peer })
}

func (c *cables) now() time.Duration { return time.Since(c.l.opened) }

// follow probes the routes to a peer if there are several. Of a peer that is followed already, it adds those that are new.
func (c *cables) follow(addr microproto.LinkAddr, p *peer) {
	if len(p.routes) < 2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.peers, func(f *followed) bool { return f.addr == addr })
	if i < 0 {
		i = len(c.peers)
		c.peers = append(c.peers, &followed{addr: addr, table: route.New(c.now(), 1)})
	}
	f := c.peers[i]
	f.peer = p
	f.table.Extend(c.now(), len(p.routes))
	f.shown = append(f.shown, make([]shown, len(p.routes)-len(f.shown))...)
	p.used.Store(&p.routes[f.table.Used()])
	if !c.begun {
		c.begun = true
		var err error
		if c.watch, err = watchInterfaces(c.interfaceChanged); err != nil {
			c.l.log("the carriers of interfaces are not watched, a failed cable is noticed by unanswered probes: %v", err)
		}
		go c.run()
	}
	select {
	case c.soon <- struct{}{}:
	default:
	}
}

func (c *cables) close() {
	close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		_ = c.watch.Close()
	}
}

// run begins the rounds of probes that are due.
func (c *cables) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-timer.C:
		case <-c.soon:
		}
		timer.Reset(c.probeDue())
	}
}

// probeDue begins the rounds that are due and returns the time to the next one.
func (c *cables) probeDue() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wait := c.now(), time.Duration(route.Interval)
	for _, f := range c.peers {
		if now >= f.table.Next() {
			c.probe(now, f)
		}
		wait = min(wait, f.table.Next()-now)
	}
	return max(wait, time.Millisecond)
}

// probe begins a round of probes to a peer.
func (c *cables) probe(now time.Duration, f *followed) {
	b := probe{kind: probeAsks, round: f.table.Begin(now), key: f.key}
	b.withdrawn = f.withdrawn(int(b.round))
	for i := range f.routes {
		if b.route = uint8(i); f.table.Probes(i) {
			_, _, _ = c.send.try(&f.routes[i], b.append(nil)) // an unanswered probe says what matters
		}
	}
}

// withdrawn returns an address of this end over which this end no longer sends, in turn if there are several. The other
// end then leaves the same cable at once, and does not send acknowledgements into it.
func (f *followed) withdrawn(round int) (addr netip.Addr) {
	for k := range f.routes {
		if i := (k + round) % len(f.routes); f.table.Cause(i) == route.Carrier || f.table.Cause(i) == route.Silent {
			addr = f.routes[i].from
		}
	}
	return addr
}

// take handles the probes among the frames of a datagram, of one size each, and removes them. It returns the length of
// the rest.
func (c *cables) take(from microproto.LinkAddr, s source, b []byte, size int) (left int) {
	for at := 0; at < len(b); at += size {
		piece := b[at:min(at+size, len(b))]
		if p, ok := decodeProbe(piece, c.l.key); ok {
			c.receive(from, s, &p)
			continue
		}
		left += copy(b[left:], piece)
	}
	return left
}

// receive answers a probe of a peer, or notes the answer of one.
func (c *cables) receive(from microproto.LinkAddr, s source, p *probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	i := slices.IndexFunc(c.peers, func(f *followed) bool { return f.addr == from })
	if p.kind == probeAsks {
		answer := probe{kind: probeAnswers, route: p.route, round: p.round, key: c.l.peers.Load().peer(from).key}
		to := netip.AddrPortFrom(netip.AddrFrom16(s.ip).Unmap(), s.port)
		_, _, _ = c.send.try(&destination{to: to, sockaddr: sockaddrOf(to, s.scope, c.l.inet4)}, answer.append(nil))
	}
	if i < 0 {
		return
	}
	f := c.peers[i]
	switch {
	case p.kind == probeAnswers && int(p.route) < len(f.routes):
		f.table.Answered(now, int(p.route), p.round)
	case p.kind == probeAsks && p.round-f.heard < 1<<31: // an older one, held up on its way, reports what was
		f.heard = p.round
		for i := range f.routes {
			if p.withdrawn.IsValid() && f.routes[i].to.Addr().WithZone("") == p.withdrawn {
				f.table.Fail(now, i, route.Withdrawn)
			}
		}
	}
	c.update(now, f)
}

// interfaceChanged notes that an interface of this host has lost its carrier, or has one.
func (c *cables) interfaceChanged(index int, carrier bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for _, f := range c.peers {
		concerns := false
		for i := range f.routes {
			if f.routes[i].local.Index != index {
				continue
			}
			concerns = true
			if !carrier {
				f.table.Fail(now, i, route.Carrier)
			}
		}
		if concerns {
			c.update(now, f)
			c.probe(now, f) // which informs the other end
		}
	}
}

// update sends over the route that the table selects, and reports what has changed.
func (c *cables) update(now time.Duration, f *followed) {
	was, used := f.inUse, f.table.Used()
	changed := was != used
	for i := range f.shown {
		s := shown{f.table.Known(i), f.table.Cause(i)}
		changed = changed || f.shown[i] != s
		f.shown[i] = s
	}
	if !changed {
		return
	}
	f.inUse = used
	f.used.Store(&f.routes[used])
	e := microproto.LinkEvent{Peer: f.addr, Up: true, Route: f.describe()}
	if used != was && f.table.Cause(was) != route.None {
		e.Err = errors.New(f.why(was))
	}
	if c.event != nil {
		c.event(e)
	}
	if used != was {
		f.gso.Store(true) // this interface may take it where the other one refused
		c.probe(now, f)   // which informs the other end
	}
}

// describe returns which route is in use and which are down.
func (f *followed) describe() string {
	var out strings.Builder
	fmt.Fprintf(&out, "frames go to %s", f.name(f.table.Used()))
	for i := range f.routes {
		switch {
		case f.table.Cause(i) != route.None:
			fmt.Fprintf(&out, "; %s", f.why(i))
		case i != f.table.Used() && f.table.Known(i):
			fmt.Fprintf(&out, "; %s works, too", f.name(i))
		}
	}
	return out.String()
}

func (f *followed) name(i int) string {
	d := &f.routes[i]
	return fmt.Sprintf("%s through %s", d.to.Addr(), d.local.Name)
}

// why returns why a route is down.
func (f *followed) why(i int) string {
	text := f.name(i) + " is down: "
	switch f.table.Cause(i) {
	case route.Carrier:
		return text + "the interface has lost its carrier"
	case route.Withdrawn:
		return text + "the other end has left it"
	}
	return text + "probes are not answered"
}
