package microproto

// Split splits a train before its segment k, 0 < k < Segments: m keeps the first k
// segments, and the message returned has the others. It has the stepped header, the same
// local attributes and hold bits, shares the memory, and is at the same stage as m. A
// micro-protocol that lists its messages has to add the new one itself, so do not split a
// train that another micro-protocol holds. ErrPool: Limits.Messages are live; m is unchanged.
func (x *Exec) Split(m *Message, k int) (*Message, error) {
	n := m.Segments()
	if m.ended || k <= 0 || k >= n {
		return nil, x.ownershipViolation("split", m)
	}
	from := k * int(m.stride)
	t, err := x.part(m, k, m.Payload[from:])
	if err != nil {
		return nil, err
	}
	end := from - int(m.stride-m.unit)
	m.Payload = m.Payload[:end:end]
	t.hold, t.stage = m.hold, m.stage
	if t.waits() {
		x.c.held++
	}
	t.segments = int32(n - k)
	t.unit, t.stride = m.unit, m.stride
	m.segments = int32(k)
	return t, nil
}
