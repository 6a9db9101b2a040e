package ib

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// Reserve implements microproto.Reserver: it returns memory registered with the adapter, which reads the payloads of
// synchronous messages there. Memory that was given back is used again.
func (l *Link) Reserve(_ microproto.LinkAddr, m microproto.Mode, _ uint64, _, n int) []byte {
	if m == microproto.ModeAsynchronous || n < gatherBytes {
		return nil // it is copied into a block
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return nil
	}
	b, err := l.userMemory.reserve(l.domain, n)
	if err != nil && !l.userMemory.failed {
		l.userMemory.failed = true
		l.log("messages are copied before they are sent: %v", err)
	}
	return b
}

// Unreserve implements microproto.Reserver.
func (l *Link) Unreserve(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.userMemory.unreserve(b)
}

// gatherOrFlatten copies a frame into one piece unless the adapter can gather it: a header in
// a block and a body in registered memory, on the reliable pair.
func (l *Link) gatherOrFlatten(f microproto.Frame, q *pair) microproto.Frame {
	if q.transport == verbs.RC {
		if _, ok := l.memory.offset(f.Data); ok {
			if _, ok := l.userMemory.element(f.Body); ok {
				l.count.Gathered.Add(1)
				return f
			}
		}
	}
	return f.Flatten(l)
}

// userMemory is registered memory in which users place messages.
type userMemory struct {
	regions []userRegion
	failed  bool // a registration has
}

type userRegion struct {
	bytes    []byte
	region   verbs.Region // nil after close
	reserved bool
}

// maxUserRegions bounds the regions, which the sender searches linearly.
const maxUserRegions = 64

// reserve returns n bytes of the smallest free region that has them, or of a new one.
func (f *userMemory) reserve(d verbs.Domain, n int) ([]byte, error) {
	best := -1
	for i := range f.regions {
		x := &f.regions[i]
		if !x.reserved && len(x.bytes) >= n && (best < 0 || len(x.bytes) < len(f.regions[best].bytes)) {
			best = i
		}
	}
	if best < 0 {
		if len(f.regions) == maxUserRegions {
			return nil, fmt.Errorf("ib: %d messages lie in registered memory", maxUserRegions)
		}
		b, r, err := register(d, 1<<bits.Len(uint(n-1)), verbs.LocalWrite)
		if err != nil {
			return nil, err
		}
		best = len(f.regions)
		f.regions = append(f.regions, userRegion{bytes: b, region: r})
	}
	x := &f.regions[best]
	x.reserved = true
	return x.bytes[:n:n], nil
}

// element returns the element for b if b lies in registered memory.
func (f *userMemory) element(b []byte) (verbs.Element, bool) {
	for i := range f.regions {
		x := &f.regions[i]
		at := address(b) - address(x.bytes) // huge if b lies before
		if x.region != nil && at <= uintptr(len(x.bytes)) && uintptr(len(b)) <= uintptr(len(x.bytes))-at {
			r := x.region
			return verbs.Element{Addr: r.Addr() + uint64(at), Length: uint32(len(b)), Key: r.LocalKey()}, true
		}
	}
	return verbs.Element{}, false
}

// unreserve makes a region free; after close it frees its memory.
func (f *userMemory) unreserve(b []byte) {
	i := slices.IndexFunc(f.regions, func(x userRegion) bool { return address(x.bytes) == address(b) })
	if i < 0 {
		return
	}
	if f.regions[i].reserved = false; f.regions[i].region == nil {
		_ = verbs.Free(f.regions[i].bytes)
		f.regions = slices.Delete(f.regions, i, i+1)
	}
}

// close ends all registrations. It frees the memory that is not reserved.
func (f *userMemory) close() error {
	var err error
	f.regions = slices.DeleteFunc(f.regions, func(x userRegion) bool {
		err = errors.Join(err, x.region.Close())
		if !x.reserved {
			err = errors.Join(err, verbs.Free(x.bytes))
		}
		return !x.reserved
	})
	for i := range f.regions {
		f.regions[i].region = nil
	}
	return err
}
