//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// channel is an ibv_comp_channel.
type channel struct {
	object
	device *device
	c      uintptr
	waiter *waiter
	get    call
	ack    call
	out    [2]uintptr // the queue of the event, and its context
}

func (d *device) CreateChannel() (verbs.Channel, error) {
	parents := []*object{&d.object}
	c, err := d.create(parents, "create a completion channel", createCompChannel, d.context)
	if err != nil {
		return nil, err
	}
	w, err := newWaiter(int(deref[cCompChannel](c).fd), d.name+" completions")
	if err != nil {
		_ = d.lib.invoke(destroyCompChannel, c)
		removeChild(parents)
		return nil, err
	}
	ch := &channel{device: d, c: c, waiter: w}
	ch.get = call{fn: d.lib[getCQEvent], errnoAt: d.lib[errnoLocation]}
	ch.get.args = [6]uintptr{c, uintptr(unsafe.Pointer(&ch.out[0])), uintptr(unsafe.Pointer(&ch.out[1]))}
	ch.ack = call{fn: d.lib[ackCQEvents]}
	return ch, nil
}

// takeEvents takes and acknowledges all events. A queue cannot be destroyed before its events
// are acknowledged.
func (ch *channel) takeEvents() (found bool, errno syscall.Errno) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return false, errnoClosed
	}
	for {
		ch.get.do()
		if int32(ch.get.result) != 0 {
			return found, syscall.Errno(ch.get.errno)
		}
		found = true
		ch.ack.args = [6]uintptr{ch.out[0], 1}
		ch.ack.do()
	}
}

func (ch *channel) Wait() (bool, error) {
	for {
		found, errno := ch.takeEvents()
		switch {
		case found:
			return true, nil
		case errno == errnoClosed:
			return false, net.ErrClosed
		case errno != syscall.EAGAIN && errno != syscall.EINTR:
			return false, ch.device.opError("take completion events", errno)
		}
		if readable, err := ch.waiter.wait(); !readable || err != nil {
			return false, err
		}
	}
}

func (ch *channel) Wake() { ch.waiter.wake() }

func (ch *channel) Close() error {
	return ch.closeOnce(fmt.Sprintf("the completion channel of %s", ch.device.name), func() error {
		ch.waiter.close()
		return ch.device.destroy("destroy a completion channel", destroyCompChannel, ch.c)
	}, &ch.device.object)
}
