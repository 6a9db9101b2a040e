//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
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
	state         atomic.Uint32 // last known state: posting in a wrong one is refused
	sends         poster[cSendWR, verbs.SendRequest]
	receives      poster[cRecvWR, verbs.ReceiveRequest]
}

func (m *domain) CreatePair(c verbs.PairConfig) (verbs.Pair, error) {
	d := m.device
	send, receive, err := d.checkPairConfig(&c)
	if err != nil {
		return nil, err
	}
	init := &cQPInitAttr{
		sendCQ: send.c, recvCQ: receive.c, qpType: int32(c.Transport),
		cap: cQPCap{
			maxSendWR: uint32(c.SendRequests), maxRecvWR: uint32(c.ReceiveRequests),
			maxSendSGE: uint32(c.SendElements), maxRecvSGE: uint32(c.ReceiveElements),
		},
	}
	parents := []*object{&m.object, &send.object, &receive.object}
	qp, err := d.create(parents, "create a queue pair", createQP, m.c, uintptr(unsafe.Pointer(init)))
	if errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%w: transport %v: %w", verbs.ErrLimit, c.Transport, err)
	}
	if err != nil {
		return nil, err
	}
	p := &pair{domain: m, send: send, receive: receive, config: c, c: qp, number: deref[cQP](qp).qpNum}
	p.sends.pair, p.sends.kind, p.sends.ready, p.sends.fill = p, "send", verbs.ReadyToSend, fillSend
	p.sends.prepare(d.ops.ops.postSend, c.SendRequests, c.SendElements)
	p.receives.pair, p.receives.kind, p.receives.ready, p.receives.fill = p, "receive", verbs.Init, fillReceive
	p.receives.prepare(d.ops.ops.postRecv, c.ReceiveRequests, c.ReceiveElements)
	return p, nil
}

// checkPairConfig checks a configuration and returns its queues. The library would report only
// that an argument is invalid.
func (d *device) checkPairConfig(c *verbs.PairConfig) (send, receive *queue, err error) {
	send, _ = c.Send.(*queue)
	receive, _ = c.Receive.(*queue)
	if send == nil || receive == nil || send.device != d || receive.device != d {
		return nil, nil, fmt.Errorf("verbs: %s: a queue pair needs completion queues of the same device", d.name)
	}
	if err := c.Check(d.limits); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return send, receive, nil
}

func (p *pair) Number() uint32 { return p.number }

func (p *pair) State() (verbs.PairState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.query()
}

// query asks for the state, since the adapter may have moved the pair to Error. mu is held.
func (p *pair) query() (verbs.PairState, error) {
	if p.closed {
		return 0, net.ErrClosed
	}
	l, a, init := p.domain.device.lib, new(cQPAttr), new(cQPInitAttr)
	errno := l.invoke(queryQP, p.c, uintptr(unsafe.Pointer(a)), qpStateMask, uintptr(unsafe.Pointer(init)))
	if errno != 0 {
		return 0, p.domain.device.opError("query a queue pair", errno)
	}
	p.state.Store(uint32(a.qpState))
	return verbs.PairState(a.qpState), nil
}

// Close implements verbs.Pair. It excludes posts while and after the pair is destroyed.
func (p *pair) Close() error {
	d := p.domain.device
	return p.closeOnce("the queue pair", func() error {
		p.sends.mu.Lock()
		defer p.sends.mu.Unlock()
		p.receives.mu.Lock()
		defer p.receives.mu.Unlock()
		if err := d.destroy("destroy a queue pair", destroyQP, p.c); err != nil {
			return err
		}
		p.sends.closed, p.receives.closed = true, true
		return nil
	}, &p.domain.object, &p.send.object, &p.receive.object)
}
