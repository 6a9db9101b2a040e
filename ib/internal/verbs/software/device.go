package software

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// device is an open adapter.
type device struct {
	adapter *Adapter
	users   atomic.Int64 // domains, channels and queues
	closed  atomic.Bool
	events  events
}

func (d *device) Name() string { return d.adapter.name }

func (d *device) check() error {
	if d.closed.Load() {
		return fmt.Errorf("software verbs: device %s: %w", d.adapter.name, net.ErrClosed)
	}
	return d.adapter.check()
}

func (d *device) Limits() (verbs.Limits, error) { return d.adapter.limits, d.check() }

func (d *device) port(number int) (*port, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if number < 1 || number > len(d.adapter.ports) {
		return nil, fmt.Errorf("%w: %s has ports 1 to %d, not %d",
			verbs.ErrLimit, d.adapter.name, len(d.adapter.ports), number)
	}
	return &d.adapter.ports[number-1], nil
}

func (d *device) Port(number int) (verbs.Port, error) {
	p, err := d.port(number)
	if err != nil {
		return verbs.Port{}, err
	}
	c := d.adapter.fabric.cfg
	out := verbs.Port{
		State: verbs.PortDown, Layer: c.Layer, LID: p.lid, MTU: c.MTU, MaxMessageBytes: maxMessageBytes,
		GIDs: len(p.gids), SubnetGUID: c.Subnet,
	}
	if p.up.Load() {
		out.State = verbs.PortActive
	}
	return out, nil
}

func (d *device) GID(number, index int) (verbs.GID, error) {
	p, err := d.port(number)
	if err != nil {
		return verbs.GID{}, err
	}
	if index < 0 || index >= len(p.gids) {
		return verbs.GID{}, fmt.Errorf("%w: port %d of %s has %d GIDs; there is no index %d",
			verbs.ErrLimit, number, d.adapter.name, len(p.gids), index)
	}
	return p.gids[index], nil
}

func (d *device) AllocDomain() (verbs.Domain, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	d.users.Add(1)
	d.adapter.fabric.live.domains.Add(1)
	d.adapter.fabric.made.domains.Add(1)
	return &domain{device: d}, nil
}

func (d *device) NextEvent() (verbs.Event, error) { return d.events.take() }

func (d *device) Close() error {
	if n := d.users.Load(); n > 0 {
		return fmt.Errorf("%w: device %s has %d domains, queues and channels open", verbs.ErrBusy, d.adapter.name, n)
	}
	if d.closed.Swap(true) {
		return nil
	}
	a := d.adapter
	a.mu.Lock()
	a.handles = slices.DeleteFunc(a.handles, func(x *device) bool { return x == d })
	a.mu.Unlock()
	d.events.close()
	if a.fabric.live.devices.Add(-1) == 0 {
		a.fabric.clock.clear()
	}
	return nil
}

// maxEvents bounds the queued events; the oldest are dropped.
const maxEvents = 1024

// events is the queue of NextEvent.
type events struct {
	mu     sync.Mutex
	more   sync.Cond
	queued []verbs.Event
	closed bool
}

func (e *events) start() { e.more.L = &e.mu }

func (e *events) put(x verbs.Event) {
	e.mu.Lock()
	if len(e.queued) == maxEvents {
		e.queued = slices.Delete(e.queued, 0, 1)
	}
	e.queued = append(e.queued, x)
	e.mu.Unlock()
	e.more.Signal()
}

func (e *events) take() (verbs.Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queued) == 0 && !e.closed {
		e.more.Wait()
	}
	if e.closed {
		return verbs.Event{}, net.ErrClosed
	}
	x := e.queued[0]
	e.queued = slices.Delete(e.queued, 0, 1)
	return x, nil
}

func (e *events) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.more.Broadcast()
}
