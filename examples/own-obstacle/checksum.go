package main

import (
	"hash/crc32"

	"github.com/p2pdc/p2pdc/microproto"
)

// checksum drops segments whose payload was damaged on the way. docs/new-microprotocol.md explains it line by line.
type checksum struct{ sum microproto.Attr[uint32] }

func newChecksum(microproto.Options) (microproto.MicroProtocol, error) { return &checksum{}, nil }

// Name implements microproto.MicroProtocol.
func (c *checksum) Name() string { return "checksum" }

// Attach implements microproto.MicroProtocol.
func (c *checksum) Attach(b *microproto.Binder) error {
	c.sum = microproto.WireAttr[uint32](b, "checksum.sum")
	microproto.Bind(b, microproto.SegmentToNet, microproto.Late, func(_ *microproto.Exec, m *microproto.Message) {
		c.sum.Set(m, crc32.ChecksumIEEE(m.Payload))
	})
	microproto.Bind(b, microproto.SegmentFromNet, microproto.First, func(x *microproto.Exec, m *microproto.Message) {
		if c.sum.Get(m) != crc32.ChecksumIEEE(m.Payload) {
			x.Drop(m, "checksum")
		}
	})
	return nil
}

// reliable returns the columns of Table I whose sessions retransmit what is dropped.
func reliable() []microproto.Column {
	return []microproto.Column{{Mode: microproto.ModeSynchronous, Intra: true}, {Mode: microproto.ModeSynchronous}}
}
