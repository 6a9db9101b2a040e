package microproto

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// planLayout tells whether the wire places of attached can get their offsets, in
// the order of attachment: always while no message lives, else only if none moves.
func (c *Composite) planLayout(attached []*attachment) (size int, err error) {
	moved := false
	for _, a := range attached {
		for _, p := range a.places {
			if p.wire {
				moved = moved || p.offset != size
				size += p.size
			}
		}
	}
	switch {
	case c.trainsLive > 0 && !takeTrains(attached):
		return 0, fmt.Errorf("%w: %d trains live, and not every micro-protocol would take them", ErrLayout, c.trainsLive)
	case size > MaxHeaderBytes:
		return 0, fmt.Errorf("%w: the header needs %d bytes of %d", ErrLimit, size, MaxHeaderBytes)
	case size > c.config.MTU:
		return 0, fmt.Errorf("%w: a header of %d bytes, an MTU of %d", ErrTooLong, size, c.config.MTU)
	case (moved || size != c.pool.hdrSize) && c.pool.live > 0:
		return 0, fmt.Errorf("%w: %d bytes to %d, %d messages live", ErrLayout, c.pool.hdrSize, size, c.pool.live)
	}
	return size, nil
}

// relayout carries a layout out, or refuses it and changes nothing.
func (c *Composite) relayout(attached []*attachment) error {
	size, err := c.planLayout(attached)
	if err != nil {
		return err
	}
	offset := 0
	for _, a := range attached {
		for _, p := range a.places {
			if p.wire {
				p.move(offset)
				offset += p.size
			}
		}
	}
	c.pool.resize(size)
	c.planTrains(attached)
	return nil
}

// assign gives new places their first offsets: those of a predecessor of the same
// shape, else none; and local attributes an index that no other one has.
func (c *Composite) assign(a, replaces *attachment) error {
	taken := uint32(0)
	for _, o := range c.attached {
		for _, p := range o.places {
			if !p.wire {
				taken |= 1 << p.offset
			}
		}
	}
	for i, p := range a.places {
		if q := predecessor(replaces, p, i); q != nil {
			p.move(q.offset)
			continue
		}
		p.offset = -1
		for k := 0; !p.wire && k < maxLocalAttrs && p.offset < 0; k++ {
			if taken&(1<<k) == 0 {
				p.move(k)
				taken |= 1 << k
			}
		}
		if !p.wire && p.offset < 0 {
			return fmt.Errorf("%w: %s declares local attribute %q and all %d are taken", ErrLimit, a.name(), p.name, maxLocalAttrs)
		}
	}
	return nil
}

// predecessor finds the place that p takes over: the i-th wire place of the same
// meaning, or the local attribute of the same name and type.
func predecessor(old *attachment, p *place, i int) *place {
	if old == nil {
		return nil
	}
	if p.wire {
		if i < len(old.places) {
			if q := old.places[i]; q.wire && q.name == p.name && q.size == p.size && q.kind == p.kind {
				return q
			}
		}
		return nil
	}
	for _, q := range old.places {
		if !q.wire && q.name == p.name && q.kind == p.kind {
			return q
		}
	}
	return nil
}

// HeaderBytes is the size of the header.
func (c *Composite) HeaderBytes() int { return c.pool.hdrSize }

// MaxPayload is what the MTU leaves for a segment's payload, in bytes.
func (c *Composite) MaxPayload() int { return c.config.MTU - c.pool.hdrSize }

// Fingerprint is a hash of the names and versions of the micro-protocols, from
// top to bottom, and of the header layout. Two ends that agree on it understand
// each other's headers.
func (c *Composite) Fingerprint() uint64 {
	h := fnv.New64a()
	word := func(n int) { _, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	text := func(s string) { word(len(s)); _, _ = h.Write([]byte(s)) }
	for _, a := range c.attached {
		version := uint16(1)
		if v, ok := a.protocol.(Versioned); ok {
			version = v.Version()
		}
		text(a.name())
		word(int(version))
		for _, p := range a.places {
			if p.wire {
				text(p.name)
				word(p.offset)
				word(p.size)
			}
		}
	}
	return h.Sum64()
}
