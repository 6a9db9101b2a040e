package ctp

import "github.com/p2pdc/p2pdc/microproto"

// packetFlight knows the packets of an asynchronous channel that were sent, from
// the first whose fate is open to the newest. A packet has come, is lost when three
// with higher numbers have come (NUMDUPACK of RFC 4341 §5), or is in flight.
// Numbers have 32 bits and wrap, compared as in RFC 1982.
type packetFlight struct {
	first    uint32 // number of records' first
	records  fifo[packetRecord]
	inFlight int // packets
}

type packetRecord struct {
	sent microproto.Instant
	fate packetFate
}

type packetFate uint8

const (
	fateOpen packetFate = iota
	fateCame
	fateLost
)

// maxFlight bounds the records, and so what may be in flight.
const maxFlight = 4096

// next is the number of the next packet.
func (f *packetFlight) next() uint32 { return f.first + uint32(f.records.n) }

// send notes a packet that leaves now and returns its number.
func (f *packetFlight) send(now microproto.Instant) uint32 {
	if f.records.n >= maxFlight {
		f.lose(0)
		f.settle()
	}
	f.records.push(packetRecord{sent: now})
	f.inFlight++
	return f.next() - 1
}

// unsend takes back the newest packet: it never left.
func (f *packetFlight) unsend(number uint32) {
	if f.records.n > 0 && number == f.next()-1 && f.records.at(f.records.n-1).fate == fateOpen {
		f.records.n--
		f.inFlight--
	}
}

// Received tells what an acknowledgement says: Highest has come, and Highest−1−i
// where bit i of Seen is set.
type Received struct {
	Highest uint32
	Seen    uint64
}

// has tells whether the acknowledgement says that a packet has come.
func (r Received) has(number uint32) bool {
	d := r.Highest - number
	return d == 0 || d <= 64 && r.Seen>>(d-1)&1 != 0
}

// acknowledge takes an acknowledgement of packets that were sent. sampled is when
// Highest left, if this is the first to acknowledge it.
func (f *packetFlight) acknowledge(r Received) (report PacketReport, sampled microproto.Instant, ok bool) {
	report.InFlight = f.inFlight
	span := int(int32(r.Highest-f.first)) + 1
	for i := range min(max(span, 0), f.records.n) {
		p := f.records.at(i)
		if p.fate != fateOpen || !r.has(f.first+uint32(i)) {
			continue
		}
		p.fate = fateCame
		f.inFlight--
		report.Acked++
		if i == span-1 {
			sampled, ok = p.sent, true
		}
	}
	later := 0
	for i := f.records.n - 1; i >= 0 && later < 3; i-- {
		if f.records.at(i).fate == fateCame {
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

// overtaken declares lost what is in flight below record i.
func (f *packetFlight) overtaken(i int) (lost int, last uint32) {
	for k := range i {
		if f.records.at(k).fate == fateOpen {
			f.lose(k)
			lost, last = lost+1, f.first+uint32(k)
		}
	}
	return lost, last
}

func (f *packetFlight) lose(i int) {
	if p := f.records.at(i); p.fate == fateOpen {
		p.fate = fateLost
		f.inFlight--
	}
}

// settle forgets the oldest packets whose fate is known.
func (f *packetFlight) settle() {
	for f.records.n > 0 && f.records.front().fate != fateOpen {
		f.records.pop()
		f.first++
	}
}

// abandon takes everything in flight for lost and returns how many that are.
func (f *packetFlight) abandon() (lost int) {
	lost = f.inFlight
	for f.records.n > 0 {
		f.records.pop()
		f.first++
	}
	f.inFlight = 0
	return lost
}
