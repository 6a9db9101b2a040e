package ctp

import (
	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// packetFlight records the packets that an asynchronous channel has sent, from the first in
// flight to the newest. A packet has arrived, is lost when three with higher numbers have
// arrived (NUMDUPACK of RFC 4341 §5), or is in flight. Numbers have 32 bits and wrap; they are
// compared as in RFC 1982.
type packetFlight struct {
	first    uint32 // number of the first record
	records  fifo.Queue[packetRecord]
	inFlight int // packets
}

type packetRecord struct {
	sent microproto.Instant
	fate packetFate
}

type packetFate uint8

const (
	fateOpen packetFate = iota
	fateArrived
	fateLost
)

const maxFlight = 4096

func (f *packetFlight) next() uint32 { return f.first + uint32(f.records.Len()) }

func (f *packetFlight) send(now microproto.Instant) uint32 {
	if f.records.Len() >= maxFlight {
		f.overtaken(1)
		f.settle()
	}
	f.records.Push(packetRecord{sent: now})
	f.inFlight++
	return f.next() - 1
}

// unsend removes the newest packet: it was not sent.
func (f *packetFlight) unsend(number uint32) {
	if f.records.Len() > 0 && number == f.next()-1 && f.records.At(f.records.Len()-1).fate == fateOpen {
		f.records.DropNewest()
		f.inFlight--
	}
}

// Received is the content of an acknowledgement: Highest has arrived, and Highest−1−i where bit i
// of Seen is set.
type Received struct {
	Highest uint32
	Seen    uint64
}

// has reports whether a packet has arrived by the acknowledgement.
func (r Received) has(number uint32) bool {
	d := r.Highest - number
	return d == 0 || d <= 64 && r.Seen>>(d-1)&1 != 0
}

// acknowledge processes an acknowledgement of packets that were sent. If it is the first to
// acknowledge Highest, ok is true and sampled is the instant at which Highest was sent.
func (f *packetFlight) acknowledge(r Received) (report PacketReport, sampled microproto.Instant, ok bool) {
	report.InFlight = f.inFlight
	span := int(int32(r.Highest-f.first)) + 1
	for i := range min(max(span, 0), f.records.Len()) {
		p := f.records.At(i)
		if p.fate != fateOpen || !r.has(f.first+uint32(i)) {
			continue
		}
		p.fate = fateArrived
		f.inFlight--
		report.Acked++
		if i == span-1 {
			sampled, ok = p.sent, true
		}
	}
	later := 0
	for i := f.records.Len() - 1; i >= 0 && later < 3; i-- {
		if f.records.At(i).fate == fateArrived {
			later++
		}
		if later == 3 {
			report.Lost, report.LastLost = f.overtaken(i)
		}
	}
	f.settle()
	report.First = f.first
	return report, sampled, ok
}

// overtaken declares the packets in flight before record i lost.
func (f *packetFlight) overtaken(i int) (lost int, last uint32) {
	for k := range i {
		if p := f.records.At(k); p.fate == fateOpen {
			p.fate = fateLost
			f.inFlight--
			lost, last = lost+1, f.first+uint32(k)
		}
	}
	return lost, last
}

// settle removes the oldest packets that have arrived or are lost.
func (f *packetFlight) settle() {
	for f.records.Len() > 0 && f.records.Front().fate != fateOpen {
		f.records.Drop()
		f.first++
	}
}

// abandon declares all packets in flight lost and returns their number.
func (f *packetFlight) abandon() (lost int) {
	lost, _ = f.overtaken(f.records.Len())
	f.settle()
	return lost
}
