//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

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
	err := p.list(func(l *library, device uintptr) error {
		name, _ := l.pointer(getDeviceName, device)
		names = append(names, cString(name))
		return nil
	})
	return names, err
}

// errFound ends a listing early.
var errFound = errors.New("found")

func (p *provider) Open(name string) (verbs.Device, error) {
	var d *device
	err := p.list(func(l *library, entry uintptr) error {
		at, _ := l.pointer(getDeviceName, entry)
		if cString(at) != name {
			return nil
		}
		context, errno := l.pointer(openDevice, entry)
		if context == 0 {
			return fmt.Errorf("verbs: cannot open %s (check the permissions of /dev/infiniband/uverbs*): %w", name, errno)
		}
		d = &device{provider: p, lib: l, name: name, context: context}
		return errFound
	})
	switch {
	case errors.Is(err, errFound):
		return d, d.initialise()
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s", verbs.ErrNoDevice, name)
}

// list calls f for every device until f fails. The library frees the list; devices that f has
// opened stay open.
func (p *provider) list(f func(l *library, device uintptr) error) error {
	l, err := p.load()
	if err != nil {
		return err
	}
	var count int32
	devices, errno := l.pointer(getDeviceList, uintptr(unsafe.Pointer(&count)))
	if devices == 0 {
		if errno == syscall.ENOSYS {
			return fmt.Errorf("%w: no ib_uverbs (modprobe ib_uverbs and the adapter's driver; "+
				"kernels for clouds often lack them)", verbs.ErrNoKernel)
		}
		return fmt.Errorf("verbs: cannot list devices: %w", errno)
	}
	defer func() { _ = l.invoke(freeDeviceList, devices) }()
	for i := range uintptr(count) {
		if err := f(l, *deref[uintptr](devices + i*unsafe.Sizeof(devices))); err != nil {
			return err
		}
	}
	return nil
}
