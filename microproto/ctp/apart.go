package ctp

import "github.com/p2pdc/p2pdc/microproto"

// A train goes, and is acknowledged, as one. Where its segments have different fates
// it is taken apart.

// whole is how many of the first n segments can be let go: a train of which only a
// part is acknowledged is taken apart, or else kept.
func (r *Retransmit) whole(x *microproto.Exec, n int) int {
	if n == 0 || n >= r.entries.n || r.entries.at(n-1).m != r.entries.at(n).m {
		return n
	}
	m := r.entries.at(n).m
	if !r.apart(x, m) {
		return int(r.number.Get(m) - r.una)
	}
	return n
}

// alone makes a segment that is to be sent again a message of its own; false: there is
// none for it now.
func (r *Retransmit) alone(x *microproto.Exec, e *entry) bool {
	return e.m.Segments() == 1 || r.apart(x, e.m)
}

// apart makes the segments of a train messages of their own, all or none.
func (r *Retransmit) apart(x *microproto.Exec, m *microproto.Message) bool {
	r.parts = r.parts[:0]
	end := r.end.Get(m) - uint64(m.Segments()*x.HeaderBytes()+m.Length())
	for i := range m.Segments() {
		p, err := x.Part(m, i)
		if err != nil {
			for _, p := range r.parts {
				x.Drop(p, "no message for a segment")
			}
			return false
		}
		end += uint64(x.HeaderBytes() + len(p.Payload))
		r.end.Set(p, end)
		r.parts = append(r.parts, p)
	}
	first := int(r.number.Get(m) - r.una)
	for i, p := range r.parts {
		r.entries.at(first + i).m = p
	}
	clear(r.parts)
	x.Done(m)
	return true
}
