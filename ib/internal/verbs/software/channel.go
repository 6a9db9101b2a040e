package software

import (
	"fmt"
	"net"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// channel is a completion channel.
type channel struct {
	device *device
	users  atomic.Int64
	event  chan struct{}
	wake   chan struct{}
	done   chan struct{}
	closed atomic.Bool
}

func (d *device) CreateChannel() (verbs.Channel, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	d.users.Add(1)
	d.adapter.fabric.countOpened(Channels)
	return &channel{device: d, event: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{})}, nil
}

func (c *channel) signal() {
	select {
	case c.event <- struct{}{}:
	default: // an event is pending already
	}
}

func (c *channel) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *channel) Wait() (bool, error) {
	select {
	case <-c.done:
		return false, net.ErrClosed
	case <-c.event:
		return true, nil
	case <-c.wake:
		return false, nil
	}
}

func (c *channel) Close() error {
	if n := c.users.Load(); n > 0 {
		return fmt.Errorf("%w: the channel serves %d completion queues", verbs.ErrBusy, n)
	}
	if c.closed.Swap(true) {
		return nil
	}
	close(c.done)
	c.device.users.Add(-1)
	c.device.adapter.fabric.countClosed(Channels)
	return nil
}
