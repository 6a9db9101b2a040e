package ether

import (
	"reflect"
	"sync/atomic"
)

// Stats holds a link's counters since it was opened, and what the kernel granted.
type Stats struct {
	FramesSent, BytesSent         uint64
	FramesReceived, BytesReceived uint64
	// Calls counts system calls that transferred something, Super datagrams of more than one
	// frame.
	SendCalls, ReceiveCalls  uint64
	SuperSent, SuperReceived uint64
	SendLost                 uint64 // frames that the kernel refused (unreachable, filtered, out of memory)
	SendFull                 uint64 // calls of Send cut short by a full socket
	Unknown                  uint64 // received datagrams from addresses never accepted
	Truncated                uint64 // received datagrams larger than any frame
	NoBuffer                 uint64 // received datagrams dropped beyond BufferBytes
	KernelDropped            uint64 // datagrams that overflowed the socket's receive queue
	PlainAcquires            uint64 // requests for buffers beyond BufferBytes
	LastSendError            error  // reason of the latest loss that SendLost counts
	GSO, GRO, Batch          bool   // in use now
	QueueIn, QueueOut        int    // sizes of the kernel's two queues as granted, bytes
}

// counters are the counters of Stats by their names there.
type counters struct {
	FramesSent, BytesSent, FramesReceived, BytesReceived            atomic.Uint64
	SendCalls, ReceiveCalls, SuperSent, SuperReceived               atomic.Uint64
	SendLost, SendFull, Unknown, Truncated, NoBuffer, KernelDropped atomic.Uint64
	PlainAcquires                                                   atomic.Uint64
}

// addOverflow takes the kernel's own 32-bit count, which several receivers may report in any
// order.
func (c *counters) addOverflow(now uint32) {
	for {
		old := c.KernelDropped.Load()
		more := int32(now - uint32(old))
		if more <= 0 || c.KernelDropped.CompareAndSwap(old, old+uint64(more)) {
			return
		}
	}
}

// addLost counts frames that the kernel refused.
func (l *Link) addLost(frames int, err error) {
	l.count.SendLost.Add(uint64(frames))
	l.lastSendError.Store(&err)
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	s := Stats{
		GSO: l.gso.Load(), GRO: l.gro, Batch: l.batch != nil,
		QueueIn: l.receiveBytes, QueueOut: int(l.sendBytes.Load()),
	}
	to := reflect.ValueOf(&s).Elem()
	for name, n := range reflect.ValueOf(&l.count).Elem().Fields() {
		to.FieldByName(name.Name).SetUint(n.Addr().Interface().(*atomic.Uint64).Load())
	}
	if e := l.lastSendError.Load(); e != nil {
		s.LastSendError = *e
	}
	return s
}
