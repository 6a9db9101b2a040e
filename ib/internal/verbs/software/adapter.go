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
	limits  verbs.Limits
	port    port
	removed atomic.Bool

	pairs   table[pair]   // by number
	regions table[region] // by key
	queues  atomic.Int64  // open completion queues

	mu      sync.Mutex
	handles []*device
}

// port is the port of an adapter, whose number is 1.
type port struct {
	adapter *Adapter
	lid     uint16
	gid     verbs.GID // the only one
	up      atomic.Bool
}

func newAdapter(f *Fabric, name string) *Adapter {
	a := &Adapter{fabric: f, name: name, limits: f.cfg.Limits}
	guid := f.rng.Uint64()
	a.pairs.init(a.limits.Pairs, 24, f.rng.Uint32())
	a.regions.init(a.limits.Regions, 32, f.rng.Uint32())
	p := &a.port
	p.adapter = a
	p.gid.Kind = verbs.GIDRoCEv2
	if f.cfg.Layer == verbs.LayerInfiniBand {
		p.gid.Kind, p.lid = verbs.GIDInfiniBand, f.nextLID
		f.nextLID++
	}
	var g [16]byte
	binary.BigEndian.PutUint64(g[:], f.cfg.Subnet)
	binary.BigEndian.PutUint64(g[8:], guid)
	p.gid.Addr = netip.AddrFrom16(g)
	p.up.Store(true)
	return a
}

// Name returns the device's name.
func (a *Adapter) Name() string { return a.name }

// SetPort connects or disconnects the cable of the port. Packets through a port that is down are
// lost. The change raises an event.
func (a *Adapter) SetPort(up bool) {
	if a.port.up.Swap(up) == up {
		return
	}
	kind := verbs.EventPortError
	if up {
		kind = verbs.EventPortActive
	}
	a.raise(verbs.Event{Kind: kind, Port: 1})
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
		d.raise(e)
	}
}

func (a *Adapter) check() error {
	if a.removed.Load() {
		return fmt.Errorf("%w: %s", verbs.ErrGone, a.name)
	}
	return nil
}
