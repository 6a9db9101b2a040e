package software

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Config sets a fabric up. The zero value is an InfiniBand subnet with an MTU of 4096
// bytes, real time and no limit on locked memory.
type Config struct {
	Layer     verbs.LinkLayer // LayerInfiniBand (0 too) routes by LID, LayerEthernet by GID
	MTU       int             // bytes, 256 to 4096 (0: 4096)
	Subnet    uint64          // prefix of the GIDs (0: fe80::)
	Seed      uint64          // of queue pair numbers, GUIDs
	LockLimit int64           // bytes that all regions together may pin (0: no limit)
	Limits    verbs.Limits    // of every adapter; zero fields take a default
	Virtual   bool            // time stands still but for Advance
}

// Fabric joins adapters. It is a verbs.Provider of all of them.
type Fabric struct {
	cfg   Config
	clock clock

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

	pinned atomic.Int64
	live   counters
	made   counters
	lost   atomic.Int64
	resent atomic.Int64
}

// NewFabric makes a fabric without adapters.
func NewFabric(c Config) *Fabric {
	if c.Layer == verbs.LayerUnspecified {
		c.Layer = verbs.LayerInfiniBand
	}
	if c.MTU == 0 {
		c.MTU = 4096
	}
	if c.Subnet == 0 {
		c.Subnet = 0xfe80 << 48
	}
	c.Limits = defaults(c.Limits)
	f := &Fabric{cfg: c, rng: rand.New(rand.NewPCG(c.Seed, 0x1bad)), nextLID: 1}
	f.clock.start(c.Virtual)
	return f
}

// defaults are near those of the Linux kernel's own software adapter.
func defaults(l verbs.Limits) verbs.Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.Pairs, 4096)
	set(&l.PairRequests, 16384)
	set(&l.Elements, 32)
	set(&l.Queues, 8192)
	set(&l.QueueDepth, 1<<20)
	set(&l.Regions, 8192)
	set(&l.PendingReads, 128)
	set(&l.InitiatedReads, 128)
	set(&l.Ports, 1)
	if l.RegionBytes == 0 {
		l.RegionBytes = 1 << 40
	}
	return l
}

// Add plugs an adapter in; its ports come up at once.
func (f *Fabric) Add(name string) (*Adapter, error) {
	if !slices.Contains([]int{256, 512, 1024, 2048, 4096}, f.cfg.MTU) {
		return nil, fmt.Errorf("software verbs: MTU of %d bytes: InfiniBand has 256, 512, 1024, 2048 and 4096", f.cfg.MTU)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.adapters {
		if a.name == name {
			return nil, fmt.Errorf("software verbs: there is a device %s already", name)
		}
	}
	a := newAdapter(f, name)
	f.adapters = append(f.adapters, a)
	return a, nil
}

// Name implements verbs.Provider.
func (f *Fabric) Name() string { return "software" }

// Devices implements verbs.Provider.
func (f *Fabric) Devices() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.adapters {
		out = append(out, a.name)
	}
	return out, nil
}

// Open implements verbs.Provider.
func (f *Fabric) Open(name string) (verbs.Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.adapters {
		if a.name == name {
			return a.open(), nil
		}
	}
	return nil, fmt.Errorf("%w: %s", verbs.ErrNoDevice, name)
}

// Now is the fabric's time since it was made.
func (f *Fabric) Now() time.Duration { return f.clock.now() }

// Advance moves the time of a virtual fabric and does what falls due, in order of
// time. On the caller's goroutine.
func (f *Fabric) Advance(d time.Duration) { f.clock.advance(d) }

// byLID and byGID find the port that an address leads to; nil when there is none.
func (f *Fabric) byLID(lid uint16) *port {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.adapters {
		for i := range a.ports {
			if a.ports[i].lid == lid {
				return &a.ports[i]
			}
		}
	}
	return nil
}

func (f *Fabric) byGID(g netip.Addr) *port {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.adapters {
		for i := range a.ports {
			if slices.ContainsFunc(a.ports[i].gids, func(e verbs.GID) bool { return e.Addr == g }) {
				return &a.ports[i]
			}
		}
	}
	return nil
}

// failure is a pair that has to go to Error as soon as no other pair is locked.
type pairFailure struct {
	pair  *pair
	epoch uint32
}

// broke notes a failure; settle, which every entry point calls when it has unlocked
// its pair, acts on it.
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
