package ether

import "sync/atomic"

// Stats are a link's counters since it was opened, and what the kernel granted.
type Stats struct {
	FramesSent, BytesSent         uint64
	FramesReceived, BytesReceived uint64
	// Calls count system calls that moved something; Super datagrams that carried
	// more than one frame.
	SendCalls, ReceiveCalls  uint64
	SuperSent, SuperReceived uint64
	SendLost                 uint64 // frames the kernel refused (unreachable, filtered, out of memory)
	SendFull                 uint64 // Sends cut short because the socket was full
	Unknown                  uint64 // received datagrams from addresses nobody accepted
	Truncated                uint64 // received datagrams larger than any frame
	NoBuffer                 uint64 // received datagrams dropped at the bound of BufferBytes
	KernelDropped            uint64 // datagrams that overflowed the socket's receive queue
	PlainAcquires            uint64 // requests for buffers past the bound of BufferBytes
	LastSendError            error  // the latest reason of SendLost
	GSO, GRO, Batch          bool   // in use now
	QueueIn, QueueOut        int    // bytes of the kernel's two queues, as granted
}

type counters struct {
	framesSent, bytesSent, framesReceived, bytesReceived       atomic.Uint64
	sendCalls, receiveCalls, superSent, superReceived          atomic.Uint64
	sendLost, sendFull, unknown, truncated, noBuffer, overflow atomic.Uint64
	lastSend                                                   atomic.Pointer[error]
}

// overflowed takes the kernel's own count, of 32 bits, which several receivers may
// report in any order.
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

// Stats returns the counters; it may be called at any time.
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
		GSO:           l.gso.Load(), GRO: l.gro, Batch: l.batched(),
		QueueIn: l.receiveBytes, QueueOut: l.sendBytes,
	}
	if e := c.lastSend.Load(); e != nil {
		s.LastSendError = *e
	}
	return s
}
