//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// provider loads the library on first use.
type provider struct {
	name   string
	once   sync.Once
	lib    *library
	err    error
	pinned atomic.Int64 // bytes of all regions; the limit on locked memory is per process
}

// New returns the provider of this host's adapters.
func New() verbs.Provider { return &provider{name: soname} }

func (p *provider) Name() string { return "libibverbs" }

func (p *provider) load() (*library, error) {
	p.once.Do(func() { p.lib, p.err = load(p.name) })
	return p.lib, p.err
}

func (p *provider) Devices() ([]string, error) {
	var names []string
	err := p.each(func(_ *library, _ uintptr, name string) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

func (p *provider) Open(name string) (verbs.Device, error) {
	var context uintptr
	var errno syscall.Errno
	found := false
	err := p.each(func(l *library, device uintptr, n string) bool {
		if found = n == name; found {
			context, errno = l.pointer(openDevice, device)
		}
		return !found
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("%w: %s", verbs.ErrNoDevice, name)
	case context == 0:
		return nil, fmt.Errorf("verbs: cannot open %s (check the permissions of /dev/infiniband/uverbs*): %w", name, errno)
	}
	d := &device{provider: p, lib: p.lib, name: name, context: context}
	return d, d.initialise()
}

// each calls f for every device until f returns false. The library frees the list; a device that f has opened stays
// open.
func (p *provider) each(f func(l *library, device uintptr, name string) bool) error {
	l, err := p.load()
	if err != nil {
		return err
	}
	var count int32
	list, errno := l.pointer(getDeviceList, uintptr(unsafe.Pointer(&count)))
	if list == 0 {
		if errno == syscall.ENOSYS {
			return fmt.Errorf("%w: no ib_uverbs (modprobe ib_uverbs and the adapter's driver; "+
				"kernels for clouds often lack them)", verbs.ErrNoKernel)
		}
		return fmt.Errorf("verbs: cannot list devices: %w", errno)
	}
	defer func() { _ = l.invoke(freeDeviceList, list) }()
	for _, device := range unsafe.Slice(deref[uintptr](list), count) {
		name, _ := l.pointer(getDeviceName, device)
		if !f(l, device, unix.BytePtrToString(deref[byte](name))) {
			break
		}
	}
	return nil
}
