package ib

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// Allocate returns n bytes of registered memory for data to send, such as the faces of a
// subdomain. Sessions opened later send synchronous messages from it without a copy: the
// adapter reads them in place. Close ends the registration. The memory stays valid until Free.
func (l *Link) Allocate(n int) ([]byte, error) {
	if n <= 0 {
		return nil, errors.New("ib: cannot allocate less than one byte of memory")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return nil, errClosed
	}
	b, err := l.userMemory.allocate(l.domain, n)
	if err == nil {
		l.hasUserMemory.Store(true)
	}
	return b, err
}

// Free frees memory of Allocate, before or after Close. Nothing may send from it any more.
func (l *Link) Free(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.userMemory.free(b)
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

// userMemory is memory registered for the user.
type userMemory struct{ regions []userRegion }

type userRegion struct {
	bytes  []byte
	region verbs.Region // nil after close
}

// maxUserRegions bounds the regions, which the sender searches linearly.
const maxUserRegions = 64

func (f *userMemory) allocate(d verbs.Domain, n int) ([]byte, error) {
	if len(f.regions) == maxUserRegions {
		return nil, fmt.Errorf("ib: %d pieces of registered memory are allocated: use fewer, larger ones", maxUserRegions)
	}
	b, r, err := register(d, n, verbs.LocalWrite)
	if err == nil {
		f.regions = append(f.regions, userRegion{b, r})
	}
	return b, err
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

// free unmaps a region, and ends its registration if it is still registered.
func (f *userMemory) free(b []byte) error {
	i := slices.IndexFunc(f.regions, func(x userRegion) bool { return len(b) > 0 && address(x.bytes) == address(b) })
	if i < 0 {
		return errors.New("ib: cannot free memory that Allocate has not returned, or that was freed before")
	}
	if r := f.regions[i].region; r != nil {
		if err := r.Close(); err != nil {
			return err
		}
	}
	err := verbs.Free(f.regions[i].bytes)
	f.regions = slices.Delete(f.regions, i, i+1)
	return err
}

// close ends all registrations and leaves the memory.
func (f *userMemory) close() error {
	var err error
	for i := range f.regions {
		if r := f.regions[i].region; r != nil {
			err = errors.Join(err, r.Close())
			f.regions[i].region = nil
		}
	}
	return err
}
