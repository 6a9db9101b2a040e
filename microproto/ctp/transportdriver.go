package ctp

import (
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// TransportDriver writes the port ids to each segment, drops segments for other ports, and
// transmits.
type TransportDriver struct {
	named
	local, remote       uint16
	source, destination microproto.Attr[uint16]
	retained            microproto.Attr[uint8]
}

func newTransportDriver(s *settings) microproto.MicroProtocol {
	return &TransportDriver{named: s.named, local: option[uint16](s, OptionPortLocal, 1, 1, math.MaxUint16),
		remote: option[uint16](s, OptionPortRemote, 1, 1, math.MaxUint16)}
}

// Attach implements microproto.MicroProtocol.
func (d *TransportDriver) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	wireAttr(b, "transport.source", &d.source)
	wireAttr(b, "transport.destination", &d.destination)
	d.retained = microproto.LocalAttr[uint8](b, attrRetained)
	b.Common(microproto.CommonCase{
		Send: func(_ *microproto.Exec, m *microproto.Message) bool {
			d.setPorts(m)
			return true
		},
		Expect:   func(_ *microproto.Exec, m *microproto.Message) bool { return d.isOurs(m) },
		Priority: microproto.First,
	})
	microproto.Bind(b, microproto.SegmentFromNet, microproto.First, d.checkPorts)
	microproto.Bind(b, microproto.SegmentToNet, microproto.Last, d.transmit)
	return nil
}

func (d *TransportDriver) checkPorts(x *microproto.Exec, m *microproto.Message) {
	if !d.isOurs(m) {
		x.Drop(m, "wrong port")
	}
}

func (d *TransportDriver) isOurs(m *microproto.Message) bool {
	return d.destination.Get(m) == d.local && d.source.Get(m) == d.remote
}

func (d *TransportDriver) setPorts(m *microproto.Message) {
	d.source.Set(m, d.local)
	d.destination.Set(m, d.remote)
}

// transmit transmits a segment. A segment that no micro-protocol retains ends here: without
// room it is lost, and counted. A retained segment is transmitted again later.
func (d *TransportDriver) transmit(x *microproto.Exec, m *microproto.Message) {
	d.setPorts(m)
	err := x.Transmit(m)
	if d.retained.Get(m) != 0 {
		return
	}
	if err != nil {
		microproto.Raise(x, microproto.SegmentLost, m)
		x.Drop(m, "no room below")
		return
	}
	microproto.Raise(x, SegmentSent, m)
	x.Done(m)
}
