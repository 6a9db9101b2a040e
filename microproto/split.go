package microproto

// Split cuts a train in two before its segment k, 0 < k < Segments: m keeps the first k
// segments, and the message that it returns has the others. That one has the same
// header, stepped, the same local attributes and hold bits, a share in the same memory,
// and is as far on its way as m is. Who keeps account of m notes the new one itself; so
// a train that another micro-protocol holds must not be cut. ErrPool when the bound is
// reached, and then m is as it was.
func (x *Exec) Split(m *Message, k int) (*Message, error) {
	n, unit := m.Segments(), int(m.unit)
	if m.ended || k <= 0 || k >= n {
		return nil, x.misuse("split", m)
	}
	t, err := x.NewMessage(m.dir)
	if err != nil {
		return nil, err
	}
	copy(t.header, m.header)
	x.c.stepHeader(t.header, k, unit)
	from := k * int(m.unit+m.gap)
	x.Share(t, m, m.Payload[from:])
	m.Payload = m.Payload[: from-int(m.gap) : from-int(m.gap)]
	t.has, t.local = m.has, m.local
	t.hold, t.stage = m.hold, m.stage
	if t.stage == stageWaiting {
		x.c.held++
	}
	t.segments, t.unit, t.gap = int32(n-k), m.unit, m.gap
	m.segments = int32(k)
	x.c.trainsLive += min(n-k, 2) + min(k, 2) - 3 // of the two those that are trains still
	return t, nil
}
