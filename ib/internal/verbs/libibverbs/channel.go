//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"net"
	"syscall"
	"time"
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
	out    [2]uintptr // the queue whose event it was, and its context
}

// CreateChannel implements verbs.Device.
func (d *device) CreateChannel() (verbs.Channel, error) {
	if err := d.addChild(); err != nil {
		return nil, err
	}
	c, errno := d.lib.pointer(d.lib.createCompChannel, d.context)
	if c == 0 {
		d.removeChild()
		return nil, d.opError("create a completion channel", errno)
	}
	w, err := newWaiter(int(deref[cCompChannel](c).fd), d.name+" completions")
	if err != nil {
		_ = d.lib.invoke(d.lib.destroyCompChannel, c)
		d.removeChild()
		return nil, err
	}
	ch := &channel{device: d, c: c, waiter: w}
	ch.get = call{fn: d.lib.getCQEvent, errnoAt: d.lib.errnoAt}
	ch.get.args = [6]uintptr{c, uintptr(unsafe.Pointer(&ch.out[0])), uintptr(unsafe.Pointer(&ch.out[1]))}
	ch.ack = call{fn: d.lib.ackCQEvents}
	return ch, nil
}

// take takes all events that there are. A queue is destroyed only after its events
// have been acknowledged, which is at once.
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

// Wait implements verbs.Channel.
func (ch *channel) Wait(timeout time.Duration) (bool, error) {
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	for {
		found, errno := ch.takeEvents()
		switch {
		case found:
			return true, nil
		case errno == errnoClosed:
			return false, net.ErrClosed
		case errno != errnoAgain && errno != syscall.EINTR:
			return false, ch.device.opError("take completion events", errno)
		}
		if timeout > 0 {
			timeout = max(0, time.Until(end))
		}
		if readable, err := ch.waiter.wait(timeout); !readable || err != nil {
			return false, err
		}
	}
}

// Wake implements verbs.Channel.
func (ch *channel) Wake() { ch.waiter.wake() }

// Close implements verbs.Channel.
func (ch *channel) Close() error {
	return ch.closeOnce(fmt.Sprintf("the completion channel of %s", ch.device.name), func() error {
		ch.waiter.close()
		if errno := ch.device.lib.invoke(ch.device.lib.destroyCompChannel, ch.c); errno != 0 {
			return ch.device.opError("destroy a completion channel", errno)
		}
		return nil
	}, &ch.device.object)
}
