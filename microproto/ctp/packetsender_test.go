package ctp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// A packetSender is one end of the asynchronous column between clusters over Ethernet. The test is
// the other end: it advances the time, counts transmissions and makes acknowledgements.
type packetSender struct {
	tb    testing.TB
	c     *microproto.Composite
	now   microproto.Instant
	label uint64
	acks  uint32
	data  []byte
	// numbers of all packets sent, in order.
	numbers []uint32
	// alone counts the acknowledgements without data.
	alone int
}

const packetMTU = 1000 // an initial window of four packets

func newPacketSender(tb testing.TB, o microproto.Options, extra ...microproto.MicroProtocol) *packetSender {
	s := &packetSender{tb: tb, data: make([]byte, 800_000)}
	c, err := microproto.NewComposite(microproto.Config{Name: "sender", MTU: packetMTU},
		append(build(tb, asyncInter, o), extra...)...)
	require.NoError(tb, err)
	s.c = c
	require.NoError(tb, c.Endpoint().Slot(tag, len(s.data)))
	require.NoError(tb, c.Endpoint().Slot(tag+1, 800))
	require.NoError(tb, c.Open(0))
	return s
}

func (s *packetSender) ack() *DCCPAck { return s.c.Protocol("DCCPAck").(*DCCPAck) }

func (s *packetSender) windowing() *DCCPWindowCongestionControl {
	return s.c.Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
}

func (s *packetSender) window() int { return *s.windowing().announced }

func (s *packetSender) threshold() int { return s.windowing().shared.Controller.Threshold() }

func (s *packetSender) inFlight() int { return *s.windowing().inFlight }

// send sends a value of nearly a thousand packets, so that some always wait.
func (s *packetSender) send() { s.value(tag, s.data) }

// sendOne sends a value of one packet.
func (s *packetSender) sendOne() { s.value(tag+1, s.data[:800]) }

func (s *packetSender) value(tag uint32, data []byte) {
	s.label++
	require.NoError(s.tb, s.c.Do(s.now, func(x *microproto.Exec) {
		_, err := s.c.Endpoint().Send(x, tag, s.label, data)
		require.NoError(s.tb, err)
	}))
	s.drain()
}

func (s *packetSender) at(name string) int {
	at := offsetOf(s.c, name)
	require.GreaterOrEqual(s.tb, at, 0, name)
	return at
}

// drain counts the transmissions since the last call.
func (s *packetSender) drain() {
	for _, o := range s.c.Drain(nil) {
		if o.Kind != microproto.OutFrame {
			continue
		}
		if o.Frame.Data[s.at(attrPacketFlags)]&flagData != 0 {
			s.numbers = append(s.numbers, binary.BigEndian.Uint32(o.Frame.Data[s.at("dccp.number"):]))
		} else {
			s.alone++
		}
		o.Frame.Release()
	}
}

// frame forges a frame of the other end.
func (s *packetSender) frame(flags uint8, number, highest uint32, seen uint64, elapsed time.Duration,
	payload []byte) []byte {
	f := make([]byte, s.c.HeaderBytes(), s.c.HeaderBytes()+len(payload))
	binary.BigEndian.PutUint16(f[s.at("transport.source"):], 1)
	binary.BigEndian.PutUint16(f[s.at("transport.destination"):], 1)
	f[s.at(attrPacketFlags)] = flags
	f[s.at("dccp.ratio")] = 1
	binary.BigEndian.PutUint32(f[s.at("dccp.number"):], number)
	binary.BigEndian.PutUint32(f[s.at("dccp.highest"):], highest)
	binary.BigEndian.PutUint64(f[s.at("dccp.seen"):], seen)
	binary.BigEndian.PutUint32(f[s.at("dccp.elapsed"):], uint32(elapsed/time.Microsecond))
	return append(f, payload...)
}

func (s *packetSender) input(f []byte) {
	require.NoError(s.tb, s.c.Input(s.now, microproto.Frame{Peer: 1, Data: f}))
	s.drain()
}

// acked says that the packets up to the i-th that was sent (from 0) have come, but for
// the ones named.
func (s *packetSender) acked(i int, but ...int) {
	seen := ^uint64(0)
	for _, b := range but {
		if d := i - b; d > 0 && d <= 64 {
			seen &^= 1 << (d - 1)
		}
	}
	s.acks++
	s.input(s.frame(flagAcknowledges, s.acks, s.numbers[i], seen, 0, nil))
}

// ackedAll says in acknowledgements of two packets each that all that was in flight has
// come; what leaves meanwhile stays in flight.
func (s *packetSender) ackedAll() {
	last := len(s.numbers) - 1
	for i := len(s.numbers) - s.inFlight() + 1; i <= last; i += 2 {
		s.acked(i)
	}
	if s.numbers[last]-s.ack().flight.first < 1<<31 {
		s.acked(last)
	}
}

// pass lets time pass, timers included.
func (s *packetSender) pass(d time.Duration) {
	until := s.now.Add(d)
	for s.c.Deadline() <= until {
		s.now = max(s.now, s.c.Deadline())
		require.NoError(s.tb, s.c.Advance(s.now))
		s.drain()
	}
	s.now = until
}

// grow brings the window to at least n packets by slow start, and leaves n or more in
// flight.
func (s *packetSender) grow(n int) {
	s.send()
	for s.window() < n {
		s.now = s.now.Add(10 * time.Millisecond)
		s.ackedAll()
		s.send()
	}
}

func (s *packetSender) drops(reason string) uint64 {
	for _, d := range s.c.Counters().Drops {
		if d.Reason == reason {
			return d.Count
		}
	}
	return 0
}
