package software

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// pageBytes is the unit of pinned memory.
const pageBytes = 4096

// domain is a protection domain.
type domain struct {
	device *device
	users  atomic.Int64 // regions and pairs
	closed atomic.Bool
}

func (d *domain) Close() error {
	if n := d.users.Load(); n > 0 {
		return fmt.Errorf("%w: the protection domain has %d regions and pairs", verbs.ErrBusy, n)
	}
	if !d.closed.Swap(true) {
		d.device.users.Add(-1)
		d.device.adapter.fabric.countClosed(Domains)
	}
	return nil
}

// region is registered memory. users counts the copies to and from it. Close waits for them, so
// that nothing uses the memory afterwards.
type region struct {
	domain *domain
	memory []byte
	addr   uint64
	access verbs.Access
	key    uint32
	pinned int64        // bytes of whole pages
	users  atomic.Int64 // negative: closed
}

// closedOffset is added to a region's users when it is closed.
const closedOffset = -1 << 62

func (d *domain) Register(b []byte, a verbs.Access) (verbs.Region, error) {
	if err := d.device.check(); err != nil {
		return nil, err
	}
	ad := d.device.adapter
	switch {
	case len(b) == 0:
		return nil, fmt.Errorf("%w: a region of 0 bytes", verbs.ErrLimit)
	case uint64(len(b)) > ad.limits.RegionBytes:
		return nil, fmt.Errorf("%w: a region of %d bytes; %s allows %d",
			verbs.ErrLimit, len(b), ad.name, ad.limits.RegionBytes)
	case a&^(verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead) != 0:
		return nil, fmt.Errorf("%w: access flags %#x", verbs.ErrAttributes, a)
	case a&verbs.RemoteWrite != 0 && a&verbs.LocalWrite == 0:
		return nil, fmt.Errorf("%w: a region for remote writes must be one for local writes too", verbs.ErrAttributes)
	}
	pages := int64(len(b)+pageBytes-1) / pageBytes * pageBytes
	f := ad.fabric
	if total := f.live[PinnedBytes].Add(pages); f.cfg.LockLimit > 0 && total > f.cfg.LockLimit {
		f.live[PinnedBytes].Add(-pages)
		return nil, &verbs.LockLimitError{Want: total, Limit: f.cfg.LockLimit}
	}
	r := &region{domain: d, memory: b, addr: uint64(uintptr(unsafe.Pointer(&b[0]))), access: a, pinned: pages}
	r.users.Store(1) // until its key is set
	key, err := ad.regions.put(r, "regions")
	if err != nil {
		f.live[PinnedBytes].Add(-pages)
		return nil, err
	}
	r.key = key
	r.users.Add(-1)
	d.users.Add(1)
	f.countOpened(Regions)
	return r, nil
}

func (r *region) Addr() uint64      { return r.addr }
func (r *region) LocalKey() uint32  { return r.key }
func (r *region) RemoteKey() uint32 { return r.key }

func (r *region) Close() error {
	for {
		u := r.users.Load()
		if u < 0 {
			return nil
		}
		if r.users.CompareAndSwap(u, u+closedOffset) {
			break
		}
	}
	d := r.domain
	d.device.adapter.regions.remove(r.key)
	for r.users.Load() != closedOffset {
		runtime.Gosched() // until the copies in progress end
	}
	d.users.Add(-1)
	f := d.device.adapter.fabric
	f.countClosed(Regions)
	f.live[PinnedBytes].Add(-r.pinned)
	return nil
}

// acquire returns the registered bytes at an address, if key, bounds, domain and access allow
// it. The caller must release the region after the copy.
func (d *domain) acquire(key uint32, addr uint64, n int, need verbs.Access) (b []byte, r *region) {
	r = d.device.adapter.regions.find(key)
	if r == nil || r.domain != d || r.access&need != need {
		return nil, nil
	}
	at, size := addr-r.addr, uint64(len(r.memory))
	if r.users.Add(1) < 0 || addr < r.addr || at > size || uint64(n) > size-at {
		r.users.Add(-1)
		return nil, nil
	}
	return r.memory[at : at+uint64(n) : at+uint64(n)], r
}

func (r *region) release() { r.users.Add(-1) }
