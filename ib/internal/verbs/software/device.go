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
	done    chan struct{} // closed with the device
	raising sync.Mutex
	events  chan verbs.Event
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
	if number != 1 {
		return nil, fmt.Errorf("%w: %s has port 1, not %d", verbs.ErrLimit, d.adapter.name, number)
	}
	return &d.adapter.port, nil
}

func (d *device) Port(number int) (verbs.Port, error) {
	p, err := d.port(number)
	if err != nil {
		return verbs.Port{}, err
	}
	c := d.adapter.fabric.cfg
	out := verbs.Port{
		State: verbs.PortDown, Layer: c.Layer, LID: p.lid, MTU: c.MTU, GIDs: 1, SubnetGUID: c.Subnet,
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
	if index != 0 {
		return verbs.GID{}, fmt.Errorf("%w: port %d of %s has one GID; there is no index %d",
			verbs.ErrLimit, number, d.adapter.name, index)
	}
	return p.gid, nil
}

func (d *device) AllocDomain() (verbs.Domain, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	d.users.Add(1)
	d.adapter.fabric.countOpened(Domains)
	return &domain{device: d}, nil
}

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
	close(d.done)
	a.fabric.countClosed(Devices)
	return nil
}

// maxEvents bounds the queued events; the oldest are dropped.
const maxEvents = 1024

// raise queues an event.
func (d *device) raise(e verbs.Event) {
	d.raising.Lock()
	defer d.raising.Unlock()
	if len(d.events) == maxEvents {
		select {
		case <-d.events:
		default: // NextEvent has taken one
		}
	}
	d.events <- e
}

func (d *device) NextEvent() (verbs.Event, error) {
	select {
	case <-d.done:
		return verbs.Event{}, net.ErrClosed
	case e := <-d.events:
		return e, nil
	}
}
