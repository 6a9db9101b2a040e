//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// object is an object of the library that others may be made from. It cannot be closed before
// these children, since C would free memory that they use.
type object struct {
	mu       sync.Mutex
	closed   bool
	children int
}

// addChild counts a child before it is made.
func (n *object) addChild() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	n.children++
	return nil
}

// lockOpen locks mu, which keeps the object open, unless it is closed.
func (n *object) lockOpen() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return net.ErrClosed
	}
	return nil
}

func (n *object) removeChild() {
	n.mu.Lock()
	n.children--
	n.mu.Unlock()
}

// closeOnce closes the object with destroy, once, and removes it from its parents.
func (n *object) closeOnce(what string, destroy func() error, parents ...*object) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if n.children > 0 {
		return fmt.Errorf("%w: %s has %d open objects made from it: close them first", verbs.ErrBusy, what, n.children)
	}
	if err := destroy(); err != nil {
		return err
	}
	n.closed = true
	removeChild(parents)
	return nil
}

// create counts a child with each parent and calls a function that returns the child's address.
// Pointers among the arguments are converted in the call itself, as for pointer.
//
//go:uintptrescapes
func (d *device) create(parents []*object, doing string, fn function, args ...uintptr) (uintptr, error) {
	for i, p := range parents {
		if err := p.addChild(); err != nil {
			removeChild(parents[:i])
			return 0, err
		}
	}
	c, errno := d.lib.pointer(fn, args...)
	if c == 0 {
		removeChild(parents)
		return 0, d.opError(doing, errno)
	}
	return c, nil
}

func removeChild(parents []*object) {
	for _, p := range parents {
		p.removeChild()
	}
}

// destroy calls a function that destroys the C object at an address.
func (d *device) destroy(doing string, fn function, c uintptr) error {
	if errno := d.lib.invoke(fn, c); errno != 0 {
		return d.opError(doing, errno)
	}
	return nil
}

// opError describes a failed operation on a device, and wraps the error of package verbs for
// its error number.
func (d *device) opError(doing string, errno syscall.Errno) error {
	kind := error(errno)
	switch errno {
	case syscall.EBUSY:
		kind = errors.Join(verbs.ErrBusy, errno)
	case syscall.EIO, syscall.ENODEV, syscall.ENXIO:
		kind = errors.Join(verbs.ErrGone, errno)
	}
	return fmt.Errorf("verbs: %s: cannot %s: %w", d.name, doing, kind)
}
