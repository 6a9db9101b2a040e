package ether

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Offloads holds the link's capabilities on this host, as found over loopback.
type Offloads struct {
	IPv4, IPv6      bool
	Batch           bool   // sendmmsg and recvmmsg
	GSO, GRO        bool   // one sent, one received datagram carried several frames
	QueueIn         int    // size of a socket's receive queue as granted, bytes
	QueueOut        int    // size of its send queue
	LoopbackFrame   int    // size of the largest frame over loopback, bytes
	Problem, Advice string // what is missing and how to fix it; or empty
}

// probeTimeout bounds the exchange of a probe.
const probeTimeout = time.Second

// Probe exchanges frames between two sockets on loopback. It takes a few milliseconds, or
// about a second when frames are lost.
func Probe() Offloads {
	var o Offloads
	err6 := o.exchange("::1")
	o.IPv6 = err6 == nil
	err4 := o.exchange("127.0.0.1")
	o.IPv4 = err4 == nil
	switch {
	case err4 != nil && err6 != nil:
		o.Problem = fmt.Sprintf("UDP over loopback does not work: %v; %v", err4, err6)
		o.Advice = "bring the loopback interface up: ip link set lo up"
	case o.QueueIn > 0 && o.QueueIn < defaultSocketBytes:
		o.Problem = fmt.Sprintf("a socket's receive queue is limited to %d bytes", o.QueueIn)
		o.Advice = fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", defaultSocketBytes, defaultSocketBytes)
	case !o.GSO || !o.GRO:
		o.Problem = "no UDP segmentation offload (GSO, GRO): every frame is sent as a datagram of its own"
		o.Advice = "run Linux 5.0 or later"
	}
	return o
}

// exchange sends equal frames to itself and records the offloads that the kernel used.
func (o *Offloads) exchange(address string) error {
	a, err := Open(Config{Listen: address})
	if err != nil {
		return err
	}
	defer a.Close()
	offer, err := a.Offer("")
	if err != nil {
		return err
	}
	self, err := a.Accept(offer)
	if err != nil {
		return err
	}
	const frames, size = 8, 1000
	out := make([]microproto.Frame, frames)
	for i := range out {
		out[i] = a.Acquire(size)
		out[i].Peer = self
	}
	if n, err := a.Send(out); err != nil || n < frames {
		return errors.Join(err, fmt.Errorf("ether: %d of %d frames sent", n, frames))
	}
	late := time.AfterFunc(probeTimeout, func() { _ = a.Close() })
	defer late.Stop()
	in := make([]microproto.Frame, frames)
	for got := 0; got < frames; {
		n, err := a.Recv(in)
		if err != nil {
			return fmt.Errorf("ether: %d of %d frames returned: %w", got, frames, err)
		}
		for i := range in[:n] {
			in[i].Release()
		}
		got += n
	}
	s := a.Stats()
	o.Batch = s.Batch
	o.GSO, o.GRO = s.GSO && s.SuperSent > 0, s.GRO && s.SuperReceived > 0
	o.QueueIn, o.QueueOut = s.QueueIn, s.QueueOut
	o.LoopbackFrame = a.Caps(microproto.ModeSynchronous).MTU
	return nil
}
