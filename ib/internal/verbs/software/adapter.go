package software

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Adapter is an adapter of a fabric; it may be opened several times.
type Adapter struct {
	fabric  *Fabric
	name    string
	guid    uint64
	limits  verbs.Limits
	ports   []port
	removed atomic.Bool

	pairs   table[pair]   // by number
	regions table[region] // by key
	queues  atomic.Int64  // open completion queues

	mu      sync.Mutex
	handles []*device
}

// port is a port of an adapter.
type port struct {
	adapter *Adapter
	number  int
	lid     uint16
	gids    []verbs.GID
	up      atomic.Bool
}

func newAdapter(f *Fabric, name string) *Adapter {
	a := &Adapter{fabric: f, name: name, guid: f.rng.Uint64(), limits: f.cfg.Limits}
	a.limits.GUID, a.limits.Firmware = a.guid, "software"
	a.pairs.init(a.limits.Pairs, 24, f.rng.Uint32())
	a.regions.init(a.limits.Regions, 32, f.rng.Uint32())
	a.ports = make([]port, a.limits.Ports)
	for i := range a.ports {
		p := &a.ports[i]
		p.adapter, p.number = a, i+1
		kind := verbs.GIDRoCEv2
		if f.cfg.Layer == verbs.LayerInfiniBand {
			kind, p.lid = verbs.GIDInfiniBand, f.nextLID
			f.nextLID++
		}
		var g [16]byte
		binary.BigEndian.PutUint64(g[:], f.cfg.Subnet)
		binary.BigEndian.PutUint64(g[8:], a.guid+uint64(i))
		p.gids = []verbs.GID{{Addr: netip.AddrFrom16(g), Kind: kind}}
		p.up.Store(true)
	}
	return a
}

// open opens the adapter. The fabric is locked.
func (a *Adapter) open() *device {
	d := &device{adapter: a}
	d.events.start()
	a.mu.Lock()
	a.handles = append(a.handles, d)
	a.mu.Unlock()
	a.fabric.live.devices.Add(1)
	a.fabric.made.devices.Add(1)
	return d
}

// Name returns the device's name.
func (a *Adapter) Name() string { return a.name }

// SetPort connects or disconnects the cable of a port, numbered from 1. Packets through a port
// that is down are lost. The change raises an event.
func (a *Adapter) SetPort(number int, up bool) error {
	if number < 1 || number > len(a.ports) {
		return fmt.Errorf("software verbs: %s has ports 1 to %d, not %d", a.name, len(a.ports), number)
	}
	if a.ports[number-1].up.Swap(up) == up {
		return nil
	}
	kind := verbs.EventPortError
	if up {
		kind = verbs.EventPortActive
	}
	a.raise(verbs.Event{Kind: kind, Port: number})
	return nil
}

// Remove removes the adapter. Operations on it fail with verbs.ErrGone from then on, and
// outstanding requests are flushed. What is open must still be closed.
func (a *Adapter) Remove() {
	f := a.fabric
	f.mu.Lock()
	f.adapters = slices.DeleteFunc(slices.Clone(f.adapters), func(x *Adapter) bool { return x == a })
	f.mu.Unlock()
	if a.removed.Swap(true) {
		return
	}
	a.pairs.each(func(q *pair) { q.failAt(q.epoch.Load()) })
	a.raise(verbs.Event{Kind: verbs.EventDeviceFatal})
	f.processFailures()
}

// raise raises an event at every open device.
func (a *Adapter) raise(e verbs.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.handles {
		d.events.put(e)
	}
}

func (a *Adapter) check() error {
	if a.removed.Load() {
		return fmt.Errorf("%w: %s", verbs.ErrGone, a.name)
	}
	return nil
}
