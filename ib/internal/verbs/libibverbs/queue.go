//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"math/bits"
	"net"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// pollBatch bounds the completions that one call returns.
const pollBatch = 64

// queue is an ibv_cq.
type queue struct {
	object
	device  *device
	channel *channel
	c       uintptr
	poll    call
	arm     call
	wc      []cWC
}

func (d *device) CreateQueue(depth int, c verbs.Channel) (verbs.CompletionQueue, error) {
	ch, _ := c.(*channel)
	if c != nil && (ch == nil || ch.device != d) {
		return nil, fmt.Errorf("verbs: %s: the completion channel is another device's", d.name)
	}
	if depth < 1 || depth > d.limits.QueueDepth {
		return nil, fmt.Errorf("%w: a completion queue of %d; the most is %d", verbs.ErrLimit, depth, d.limits.QueueDepth)
	}
	parents := []*object{&d.object}
	var channel uintptr
	if ch != nil {
		parents, channel = append(parents, &ch.object), ch.c
	}
	doing := fmt.Sprintf("create a completion queue of %d", depth)
	cq, err := d.create(parents, doing, createCQ, d.context, uintptr(depth), 0, channel, 0)
	if err != nil {
		return nil, err
	}
	q := &queue{device: d, channel: ch, c: cq, wc: make([]cWC, min(depth, pollBatch))}
	q.poll.fn, q.arm.fn = d.ops.ops.pollCQ, d.ops.ops.reqNotifyCQ
	q.arm.args = [6]uintptr{cq, 0}
	return q, nil
}

func (q *queue) Poll(dst []verbs.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, net.ErrClosed
	}
	if len(dst) == 0 {
		return 0, nil
	}
	q.poll.args = [6]uintptr{q.c, uintptr(min(len(dst), len(q.wc))), uintptr(unsafe.Pointer(&q.wc[0]))}
	q.poll.do()
	n := int(int32(q.poll.result))
	if n < 0 {
		return 0, q.device.opError("poll a completion queue", errnoOf(int32(n)))
	}
	for i := range n {
		q.wc[i].read(&dst[i])
	}
	return n, nil
}

// read converts a completion from C's layout.
func (w *cWC) read(to *verbs.Completion) {
	*to = verbs.Completion{ID: w.wrID, Status: verbs.Status(w.status), Pair: w.qpNum}
	if w.status != 0 {
		return
	}
	switch w.opcode {
	case wcSend:
		to.Kind = verbs.Sent
	case wcRDMAWrite:
		to.Kind = verbs.Written
	case wcRecv:
		to.Kind, to.Bytes = verbs.Received, w.byteLen
	case wcRecvRDMAWithImm:
		to.Kind, to.Bytes = verbs.ReceivedImmediate, w.byteLen
	}
	if to.Kind >= verbs.Received && w.wcFlags&wcWithImm != 0 {
		to.HasImmediate, to.Immediate = true, swapOrder(w.immData)
	}
}

// swapOrder converts between host and network order. Both architectures are little-endian.
func swapOrder(v uint32) uint32 { return bits.ReverseBytes32(v) }

func (q *queue) Arm() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return net.ErrClosed
	}
	if q.channel == nil {
		return fmt.Errorf("verbs: %s: a completion queue without a channel raises no events", q.device.name)
	}
	q.arm.do()
	if errno := errnoOf(int32(q.arm.result)); errno != 0 {
		return q.device.opError("arm a completion queue", errno)
	}
	return nil
}

func (q *queue) Close() error {
	parents := []*object{&q.device.object}
	if q.channel != nil {
		parents = append(parents, &q.channel.object)
	}
	return q.closeOnce("the completion queue", func() error {
		return q.device.destroy("destroy a completion queue", destroyCQ, q.c)
	}, parents...)
}
