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

// node is an object of the library that may have others that were made from it, its
// children: it cannot be closed before them. C would free what they still use.
type object struct {
	mu       sync.Mutex
	closed   bool
	children int
}

// adopt counts a child that is about to be made.
func (n *object) addChild() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	n.children++
	return nil
}

// enter keeps the node from being closed until leave, for a short call.
func (n *object) lockOpen() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return net.ErrClosed
	}
	return nil
}

func (n *object) unlock() { n.mu.Unlock() }

func (n *object) removeChild() {
	n.mu.Lock()
	n.children--
	n.mu.Unlock()
}

// shut closes the node with destroy, once, and takes it from its parents.
func (n *object) closeOnce(what string, destroy func() error, parents ...*object) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if n.children > 0 {
		return fmt.Errorf("%w: %s has %d of what was made from it open", verbs.ErrBusy, what, n.children)
	}
	if err := destroy(); err != nil {
		return err
	}
	n.closed = true
	for _, p := range parents {
		p.removeChild()
	}
	return nil
}

// adopt counts a child with each of its parents, or with none.
func addChild(parents ...*object) error {
	for i, p := range parents {
		if err := p.addChild(); err != nil {
			for _, q := range parents[:i] {
				q.removeChild()
			}
			return err
		}
	}
	return nil
}

// failure says what failed on a device, and wraps the error of package verbs that an
// error number stands for.
func (d *device) opError(doing string, errno syscall.Errno) error {
	kind := error(errno)
	for _, k := range []struct {
		errno syscall.Errno
		err   error
	}{
		{syscall.EBUSY, verbs.ErrBusy},
		{syscall.EIO, verbs.ErrGone},
		{syscall.ENODEV, verbs.ErrGone},
		{syscall.ENXIO, verbs.ErrGone},
	} {
		if errno == k.errno {
			kind = errors.Join(k.err, errno)
		}
	}
	return fmt.Errorf("verbs: %s: cannot %s: %w", d.name, doing, kind)
}
