package microproto

// Split splits a train before its segment k, 0 < k < Segments: m keeps the first k
// segments, and the message returned has the others. It has the stepped header, the same
// local attributes and hold bits, shares the memory, and is at the same stage as m. A
// micro-protocol that lists its messages has to add the new one itself, so do not split a
// train that another micro-protocol holds. ErrPool: Limits.Messages are live; m is unchanged.
func (x *Exec) Split(m *Message, k int) (*Message, error) {
	n, unit := m.Segments(), int(m.unit)
	if m.ended || k <= 0 || k >= n {
		return nil, x.ownershipViolation("split", m)
	}
	t, err := x.NewMessage(m.dir)
	if err != nil {
		return nil, err
	}
	copy(t.header, m.header)
	x.c.stepHeader(t.header, k, unit)
	from := k * int(m.stride)
	end := from - int(m.stride-m.unit)
	x.Share(t, m, m.Payload[from:])
	m.Payload = m.Payload[:end:end]
	t.localSet, t.local = m.localSet, m.local
	t.hold, t.stage = m.hold, m.stage
	if t.stage == stageWaiting {
		x.c.held++
	}
	t.segments = int32(n - k)
	t.unit, t.stride = m.unit, m.stride
	m.segments = int32(k)
	x.c.trainsLive += min(n-k, 2) + min(k, 2) - 3 // each of the two may still be a train
	return t, nil
}
