//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// pair is an ibv_qp.
type pair struct {
	object
	domain        *domain
	send, receive *queue
	config        verbs.PairConfig
	c             uintptr
	number        uint32
	state         atomic.Uint32 // the last that was set: posting in a wrong one is refused
	sends         sendPoster
	receives      receivePoster
}

// CreatePair implements verbs.Domain.
func (m *domain) CreatePair(c verbs.PairConfig) (verbs.Pair, error) {
	d := m.device
	send, receive, err := d.checkPairConfig(&c)
	if err != nil {
		return nil, err
	}
	parents := []*object{&m.object, &send.object, &receive.object}
	if err := addChild(parents...); err != nil {
		return nil, err
	}
	init := &cQPInitAttr{
		sendCQ: send.c, recvCQ: receive.c, qpType: int32(c.Transport),
		cap: cQPCap{
			maxSendWR: uint32(c.SendRequests), maxRecvWR: uint32(c.ReceiveRequests),
			maxSendSGE: uint32(c.SendElements), maxRecvSGE: uint32(c.ReceiveElements),
			maxInlineData: uint32(c.InlineBytes),
		},
	}
	qp, errno := d.lib.pointer(d.lib.createQP, m.c, uintptr(unsafe.Pointer(init)))
	if qp == 0 {
		for _, p := range parents {
			p.removeChild()
		}
		if errno == syscall.EINVAL {
			return nil, fmt.Errorf("%w: %s: a pair with %d bytes inline, or of transport %v: %w", verbs.ErrLimit, d.name, c.InlineBytes, c.Transport, errno)
		}
		return nil, d.opError("create a queue pair", errno)
	}
	p := &pair{domain: m, send: send, receive: receive, config: c, c: qp, number: deref[cQP](qp).qpNum}
	p.sends.prepare(p)
	p.receives.prepare(p)
	return p, nil
}

// admit judges a pair's configuration; what the library would only call invalid gets a
// name.
func (d *device) checkPairConfig(c *verbs.PairConfig) (send, receive *queue, err error) {
	send, _ = c.Send.(*queue)
	receive, _ = c.Receive.(*queue)
	if send == nil || receive == nil || send.device != d || receive.device != d {
		return nil, nil, fmt.Errorf("verbs: %s: a queue pair needs completion queues of the same device", d.name)
	}
	if c.Transport != verbs.RC && c.Transport != verbs.UC {
		return nil, nil, fmt.Errorf("verbs: %s: no queue pairs of %v", d.name, c.Transport)
	}
	for _, l := range []struct {
		what        string
		given, most int
	}{
		{"send requests", c.SendRequests, d.limits.PairRequests},
		{"receive requests", c.ReceiveRequests, d.limits.PairRequests},
		{"elements of a send", c.SendElements, d.limits.Elements},
		{"elements of a receive", c.ReceiveElements, d.limits.Elements},
		{"bytes inline", c.InlineBytes, 1 << 16},
	} {
		if l.given < 0 || l.given > l.most {
			return nil, nil, fmt.Errorf("%w: %d %s of a queue pair; %s allows %d", verbs.ErrLimit, l.given, l.what, d.name, l.most)
		}
	}
	return send, receive, nil
}

func (p *pair) Number() uint32             { return p.number }
func (p *pair) Transport() verbs.Transport { return p.config.Transport }

// State implements verbs.Pair.
func (p *pair) State() (verbs.PairState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.query()
}

// query asks the adapter, which may have moved the pair to Error; the lock is held.
func (p *pair) query() (verbs.PairState, error) {
	if p.closed {
		return 0, net.ErrClosed
	}
	l, a, init := p.domain.device.lib, new(cQPAttr), new(cQPInitAttr)
	if errno := l.invoke(l.queryQP, p.c, uintptr(unsafe.Pointer(a)), qpStateMask, uintptr(unsafe.Pointer(init))); errno != 0 {
		return 0, p.domain.device.opError("query a queue pair", errno)
	}
	p.state.Store(uint32(a.qpState))
	return verbs.PairState(a.qpState), nil
}

// Close implements verbs.Pair. No post is under way when the pair is destroyed, and
// none comes after it.
func (p *pair) Close() error {
	d := p.domain.device
	return p.closeOnce("the queue pair", func() error {
		p.sends.mu.Lock()
		defer p.sends.mu.Unlock()
		p.receives.mu.Lock()
		defer p.receives.mu.Unlock()
		if errno := d.lib.invoke(d.lib.destroyQP, p.c); errno != 0 {
			return d.opError("destroy a queue pair", errno)
		}
		p.sends.closed, p.receives.closed = true, true
		return nil
	}, &p.domain.object, &p.send.object, &p.receive.object)
}
