package ctp

import "github.com/p2pdc/p2pdc/microproto"

// contents are those of a message that is being received, or was received and is unread: bytes, or the trains and
// segments themselves, which saves a copy.
type contents struct {
	length int
	data   []byte                // nil: parts hold the bytes
	parts  []*microproto.Message // in order
	kept   int                   // bytes of memory that the parts occupy
	posted bool                  // data is the posted memory of the user
}

// A message is copied if it is short, or if its parts are many or occupy much more memory than their bytes: a link may
// receive a short frame in a buffer for a long one.
const (
	minKept     = 2048 // bytes
	maxParts    = 16
	maxKept     = 4 // bytes of memory for each byte
	keptOfLimit = 4 // one of so many messages of a composite may be a part
)

// copyTo copies the bytes to dst, unless they are there already.
func (c *contents) copyTo(dst []byte) {
	if c.data != nil {
		if c.length > 0 && &dst[0] != &c.data[0] {
			copy(dst, c.data)
		}
		return
	}
	n := 0
	for _, m := range c.parts {
		n += m.CopyTo(dst[n:])
	}
}

// flatten copies the parts, if the contents are not in one piece, to memory of the channel. The caller ends them.
func (b *buffers) flatten(c *contents) (parts []*microproto.Message) {
	if c.data != nil {
		return nil
	}
	data := b.get(c.length)
	c.copyTo(data)
	parts, c.data, c.parts = c.parts, data, nil
	return parts
}

// finish ends parts that were read and keeps the list for others.
func (b *buffers) finish(x *microproto.Exec, parts []*microproto.Message) {
	for _, m := range parts {
		x.Done(m)
	}
	b.kept -= len(parts)
	if cap(parts) == maxParts && len(b.lists) < maxFreeBuffers {
		clear(parts)
		b.lists = append(b.lists, parts[:0])
	}
}

// mayKeep reports whether a segment of a message of n bytes may be kept instead of its bytes. Those kept of the message
// occupy so much memory already.
func (b *buffers) mayKeep(m *microproto.Message, n, kept int) bool {
	memory := m.Kept()
	return n >= minKept && b.kept < b.mostKept && memory > 0 && kept+memory <= maxKept*n
}

// keep appends a segment to the parts of a message without data. It reports whether it did; then the caller must not
// end the segment.
func (b *buffers) keep(c *contents, m *microproto.Message) bool {
	if len(c.parts) == maxParts || !b.mayKeep(m, c.length, c.kept) {
		return false
	}
	c.kept += m.Kept()
	if c.parts == nil {
		if last := len(b.lists) - 1; last >= 0 {
			c.parts, b.lists = b.lists[last], b.lists[:last]
		} else {
			c.parts = make([]*microproto.Message, 0, maxParts)
		}
	}
	c.parts = append(c.parts, m)
	b.kept++
	return true
}
