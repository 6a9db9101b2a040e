package ether

import "sync/atomic"

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

type counters struct {
	framesSent, bytesSent, framesReceived, bytesReceived       atomic.Uint64
	sendCalls, receiveCalls, superSent, superReceived          atomic.Uint64
	sendLost, sendFull, unknown, truncated, noBuffer, overflow atomic.Uint64
	lastSend                                                   atomic.Pointer[error]
}

// addOverflow takes the kernel's own 32-bit count, which several receivers may report in any
// order.
func (c *counters) addOverflow(now uint32) {
	for {
		old := c.overflow.Load()
		more := int32(now - uint32(old))
		if more <= 0 || c.overflow.CompareAndSwap(old, old+uint64(more)) {
			return
		}
	}
}

func (c *counters) addLost(frames int, err error) {
	c.sendLost.Add(uint64(frames))
	c.lastSend.Store(&err)
}

// Stats returns the current counters.
func (l *Link) Stats() Stats {
	c := &l.count
	s := Stats{
		FramesSent: c.framesSent.Load(), BytesSent: c.bytesSent.Load(),
		FramesReceived: c.framesReceived.Load(), BytesReceived: c.bytesReceived.Load(),
		SendCalls: c.sendCalls.Load(), ReceiveCalls: c.receiveCalls.Load(),
		SuperSent: c.superSent.Load(), SuperReceived: c.superReceived.Load(),
		SendLost: c.sendLost.Load(), SendFull: c.sendFull.Load(),
		Unknown: c.unknown.Load(), Truncated: c.truncated.Load(),
		NoBuffer: c.noBuffer.Load(), KernelDropped: c.overflow.Load(),
		PlainAcquires: l.pool.missed(),
		GSO:           l.gso.Load(), GRO: l.gro, Batch: l.batch != nil,
		QueueIn: l.receiveBytes, QueueOut: l.sendBytes,
	}
	if e := c.lastSend.Load(); e != nil {
		s.LastSendError = *e
	}
	return s
}
