package ib

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// Allocate returns n bytes of registered memory for what will be sent: the faces of a
// subdomain. Sessions opened later send synchronous messages that lie in it without a
// copy: the adapter reads them where they are. Close ends the registration and leaves the
// memory, which is the caller's until Free.
func (l *Link) Allocate(n int) ([]byte, error) {
	if n <= 0 {
		return nil, errors.New("ib: memory of no bytes asked for")
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

// Free gives memory of Allocate back, before or after Close, when nothing sends from it
// any more.
func (l *Link) Free(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.userMemory.free(b)
}

// flat makes a frame independent of memory that is not the link's to read later: all
// but a header in a block and a payload in registered memory, for the reliable pair.
func (l *Link) gatherOrFlatten(f microproto.Frame, q *pair) microproto.Frame {
	if q.transport == verbs.RC {
		if _, ok := l.memory.offset(f.Data); ok {
			if _, ok := l.userMemory.element(f.Body); ok {
				l.count.gathered.Add(1)
				return f
			}
		}
	}
	return f.Flatten(l)
}

// faces are pieces of memory registered for the user.
type userMemory struct{ regions []userRegion }

type userRegion struct {
	bytes  []byte
	base   uintptr
	region verbs.Region
}

// mostFaces bounds them: the sender looks through all of them.
const maxUserRegions = 64

func (f *userMemory) allocate(d verbs.Domain, n int) ([]byte, error) {
	if len(f.regions) == maxUserRegions {
		return nil, errors.New("ib: 64 pieces of registered memory are allocated already: take fewer, larger ones")
	}
	b, err := verbs.Allocate(n)
	if err != nil {
		return nil, err
	}
	r, err := d.Register(b, verbs.LocalWrite)
	if err != nil {
		_ = verbs.Free(b)
		return nil, explainLimit(err)
	}
	f.regions = append(f.regions, userRegion{b, uintptr(unsafe.Pointer(unsafe.SliceData(b))), r})
	return b, nil
}

// element finds registered memory that holds b.
func (f *userMemory) element(b []byte) (verbs.Element, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := range f.regions {
		x := &f.regions[i]
		if x.region != nil && at >= x.base && at-x.base+uintptr(len(b)) <= uintptr(len(x.bytes)) {
			return verbs.Element{Addr: x.region.Addr() + uint64(at-x.base), Length: uint32(len(b)), Key: x.region.LocalKey()}, true
		}
	}
	return verbs.Element{}, false
}

// free unmaps a piece, and ends its registration if it still has one.
func (f *userMemory) free(b []byte) error {
	for i := range f.regions {
		x := &f.regions[i]
		if len(b) == 0 || unsafe.SliceData(x.bytes) != unsafe.SliceData(b) {
			continue
		}
		if x.region != nil {
			if err := x.region.Close(); err != nil {
				return err
			}
		}
		err := verbs.Free(x.bytes)
		f.regions = slices.Delete(f.regions, i, i+1)
		return err
	}
	return errors.New("ib: memory that Allocate has not returned, or that was freed before")
}

// close ends all registrations; the memory stays.
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
