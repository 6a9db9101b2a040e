package microproto

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// checkHeader reports whether the header, as far as it is declared, fits its bounds.
func (c *Composite) checkHeader() error {
	switch size := c.pool.hdrSize; {
	case size > MaxHeaderBytes:
		return fmt.Errorf("%w: the header needs %d bytes of %d", ErrLimit, size, MaxHeaderBytes)
	case size > c.config.MTU:
		return fmt.Errorf("%w: a header of %d bytes, an MTU of %d", ErrTooLong, size, c.config.MTU)
	}
	return nil
}

// Layout returns the header's regions in order of offset.
func (c *Composite) Layout() []Region {
	var out []Region
	for _, f := range c.fields {
		if f.wire {
			out = append(out, Region{f.owner.name, f.name, f.offset, f.size})
		}
	}
	return out
}

// HeaderBytes returns the size of the header in bytes.
func (c *Composite) HeaderBytes() int { return c.pool.hdrSize }

// MaxPayload returns the largest payload of a segment in bytes: the MTU less the header.
func (c *Composite) MaxPayload() int { return c.config.MTU - c.pool.hdrSize }

// Fingerprint returns a hash of the names and versions of the micro-protocols, from
// top to bottom, and of the header layout. Two ends with equal fingerprints understand
// each other's headers.
func (c *Composite) Fingerprint() uint64 {
	h := fnv.New64a()
	number := func(n int) { _, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	text := func(s string) { number(len(s)); _, _ = h.Write([]byte(s)) }
	for _, a := range c.attached {
		text(a.name)
		number(int(a.version))
		for _, f := range c.fields {
			if f.wire && f.owner == a {
				text(f.name)
				number(f.offset)
				number(f.size)
			}
		}
	}
	return h.Sum64()
}
