// Package software is an adapter in pure Go for package verbs: the devices of one Fabric, all
// in one process, connected without a kernel. It follows the rules of the InfiniBand
// Architecture Specification, volume 1, that programs break most easily: attribute masks,
// states, keys and bounds, empty receive queues, packet sequence numbers, loss on UC, flushes,
// overruns. Work is done on the goroutine that posts it. Only timers use another goroutine.
package software

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Config configures a fabric. The zero value is an InfiniBand subnet with an MTU of 4096
// bytes and no limit on locked memory.
type Config struct {
	Layer     verbs.LinkLayer // LayerInfiniBand (or 0) routes by LID, LayerEthernet by GID
	MTU       int             // bytes, 256 to 4096 (0: 4096)
	Subnet    uint64          // prefix of the GIDs (0: fe80::)
	Seed      uint64          // of queue pair numbers and GUIDs
	LockLimit int64           // bytes that all regions together may pin (0: unlimited)
	Limits    verbs.Limits    // of every adapter; zero fields take a default
}

// Fabric joins adapters. It is their verbs.Provider.
type Fabric struct {
	cfg Config

	mu       sync.Mutex
	adapters []*Adapter
	rng      *rand.Rand
	nextLID  uint16

	hasRule atomic.Bool
	ruleMu  sync.Mutex
	rule    Rule

	failedMu     sync.Mutex
	failed       []pairFailure
	failureCount atomic.Int32

	live   counters
	made   counters
	lost   atomic.Int64
	resent atomic.Int64
}

// NewFabric returns a fabric without adapters.
func NewFabric(c Config) *Fabric {
	c.Layer = cmp.Or(c.Layer, verbs.LayerInfiniBand)
	c.MTU = cmp.Or(c.MTU, 4096)
	c.Subnet = cmp.Or(c.Subnet, 0xfe80<<48)
	c.Limits = defaults(c.Limits)
	return &Fabric{cfg: c, rng: rand.New(rand.NewPCG(c.Seed, 0x1bad)), nextLID: 1}
}

// defaults fills in limits near those of the Linux kernel's own software adapter.
func defaults(l verbs.Limits) verbs.Limits {
	l.Pairs = cmp.Or(l.Pairs, 4096)
	l.PairRequests = cmp.Or(l.PairRequests, 16384)
	l.Elements = cmp.Or(l.Elements, 32)
	l.Queues = cmp.Or(l.Queues, 8192)
	l.QueueDepth = cmp.Or(l.QueueDepth, 1<<20)
	l.Regions = cmp.Or(l.Regions, 8192)
	l.Ports = 1
	l.RegionBytes = cmp.Or(l.RegionBytes, 1<<40)
	return l
}

func validMTU(n int) bool { return slices.Contains([]int{256, 512, 1024, 2048, 4096}, n) }

// Add adds an adapter; its ports come up at once.
func (f *Fabric) Add(name string) (*Adapter, error) {
	if !validMTU(f.cfg.MTU) {
		return nil, fmt.Errorf("software verbs: MTU of %d bytes: InfiniBand has 256, 512, 1024, 2048 and 4096", f.cfg.MTU)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.find(name) != nil {
		return nil, fmt.Errorf("software verbs: there is a device %s already", name)
	}
	a := newAdapter(f, name)
	f.adapters = append(f.adapters, a)
	return a, nil
}

// find returns an adapter by name, or nil. mu is held.
func (f *Fabric) find(name string) *Adapter {
	if i := slices.IndexFunc(f.adapters, func(a *Adapter) bool { return a.name == name }); i >= 0 {
		return f.adapters[i]
	}
	return nil
}

// Adapter returns the adapter with a name.
func (f *Fabric) Adapter(name string) (*Adapter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.find(name); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("%w: %s", verbs.ErrNoDevice, name)
}

func (f *Fabric) Name() string { return "software" }

func (f *Fabric) Devices() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.adapters {
		out = append(out, a.name)
	}
	return out, nil
}

func (f *Fabric) Open(name string) (verbs.Device, error) {
	a, err := f.Adapter(name)
	if err != nil {
		return nil, err
	}
	d := &device{adapter: a, done: make(chan struct{}), events: make(chan verbs.Event, maxEvents)}
	a.mu.Lock()
	a.handles = append(a.handles, d)
	a.mu.Unlock()
	f.countOpened(Devices)
	return d, nil
}

// pairFailure is a pair that must go to Error once no other pair is locked.
type pairFailure struct {
	pair  *pair
	epoch uint32
}

// queueFailure queues a failure. Every entry point calls processFailures after it has unlocked
// its pair.
func (f *Fabric) queueFailure(q *pair, epoch uint32) {
	f.failedMu.Lock()
	f.failed = append(f.failed, pairFailure{q, epoch})
	f.failureCount.Store(int32(len(f.failed)))
	f.failedMu.Unlock()
}

func (f *Fabric) processFailures() {
	for f.failureCount.Load() > 0 {
		f.failedMu.Lock()
		if len(f.failed) == 0 {
			f.failedMu.Unlock()
			return
		}
		x := f.failed[0]
		f.failed = slices.Delete(f.failed, 0, 1)
		f.failureCount.Store(int32(len(f.failed)))
		f.failedMu.Unlock()
		x.pair.failAt(x.epoch)
	}
}
