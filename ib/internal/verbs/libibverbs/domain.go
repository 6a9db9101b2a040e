//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// domain is an ibv_pd.
type domain struct {
	object
	device *device
	c      uintptr
}

func (d *device) AllocDomain() (verbs.Domain, error) {
	c, err := d.create([]*object{&d.object}, "allocate a protection domain", allocPD, d.context)
	if err != nil {
		return nil, err
	}
	return &domain{device: d, c: c}, nil
}

func (m *domain) Close() error {
	return m.closeOnce("the protection domain", func() error {
		return m.device.destroy("free a protection domain", deallocPD, m.c)
	}, &m.device.object)
}

// region is an ibv_mr.
type region struct {
	object
	domain *domain
	c      uintptr
	pages  int64 // size of the pinned pages, bytes
	mr     cMR
}

func (m *domain) Register(b []byte, a verbs.Access) (verbs.Region, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: a region of no bytes", verbs.ErrLimit)
	}
	if err := m.addChild(); err != nil {
		return nil, err
	}
	d, start := m.device, uintptr(unsafe.Pointer(&b[0]))
	page := uintptr(os.Getpagesize())
	pages := int64((start+uintptr(len(b))+page-1)&^(page-1) - start&^(page-1))
	c, errno := d.lib.pointer(regMR, m.c, start, uintptr(len(b)), uintptr(a))
	if c == 0 {
		m.removeChild()
		return nil, d.registerError(len(b), pages, errno)
	}
	d.provider.pinned.Add(pages)
	return &region{domain: m, c: c, pages: pages, mr: *deref[cMR](c)}, nil
}

// registerError describes a failed registration. The kernel reports the limit on locked memory
// as a lack of memory.
func (d *device) registerError(n int, pages int64, errno syscall.Errno) error {
	var limit unix.Rlimit
	if errno == syscall.ENOMEM && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		want := d.provider.pinned.Load() + pages
		if limit.Cur != unix.RLIM_INFINITY && want > 0 && uint64(want) > limit.Cur {
			return &verbs.LockLimitError{Want: want, Limit: int64(limit.Cur)}
		}
	}
	return d.opError(fmt.Sprintf("register %d bytes (the most is %d)", n, d.limits.RegionBytes), errno)
}

func (r *region) Addr() uint64      { return uint64(r.mr.addr) }
func (r *region) LocalKey() uint32  { return r.mr.lkey }
func (r *region) RemoteKey() uint32 { return r.mr.rkey }

func (r *region) Close() error {
	d := r.domain.device
	return r.closeOnce("the region", func() error {
		if err := d.destroy("deregister a region", deregMR, r.c); err != nil {
			return err
		}
		d.provider.pinned.Add(-r.pages)
		return nil
	}, &r.domain.object)
}
