package ctp

import "github.com/p2pdc/p2pdc/microproto"

// A train is sent and acknowledged as one. If only some of its segments are acknowledged,
// lost or within the window, it is split in two or three.

// trainSplit asks Retransmit to split a train that it retains: the congestion window ends
// within it.
var trainSplit = microproto.NewEvent[*splitRequest]("ctp.train.split")

// splitRequest is the argument of trainSplit: m keeps its first k segments, rest gets the
// others; rest is nil if the pool had no message.
type splitRequest struct {
	m    *microproto.Message
	k    int
	rest *microproto.Message
}

// split splits a train before its segment k and updates the entries. It returns the second
// part, nil if the pool has no message.
func (r *Retransmit) split(x *microproto.Exec, m *microproto.Message, k int) *microproto.Message {
	t, err := x.Split(m, k)
	if err != nil {
		return nil
	}
	r.messages++
	n := t.Segments()
	r.end.Set(m, r.end.Get(t)-uint64(n*x.HeaderBytes()+t.Length()))
	first := int(r.number.Get(t) - r.una)
	for i := first; i < first+n; i++ {
		r.entries.At(i).m = t
	}
	return t
}

// splitAtAck returns how many of the first n segments can be released. It splits a train of
// which a part is acknowledged; if that is not possible, the train is retained completely.
func (r *Retransmit) splitAtAck(x *microproto.Exec, n int) int {
	if n == 0 || n >= r.entries.Len() || r.entries.At(n-1).m != r.entries.At(n).m {
		return n
	}
	m := r.entries.At(n).m
	first := int(r.number.Get(m) - r.una)
	if r.split(x, m, n-first) == nil {
		return first
	}
	return n
}

// isolate makes segment i, which is to be sent again, a message of its own. It reports whether
// the pool had messages for that. Half of the pool is reserved for incoming segments, except
// when the oldest segment is to be sent: its acknowledgement releases messages.
func (r *Retransmit) isolate(x *microproto.Exec, i int) bool {
	m := r.entries.At(i).m
	if m.Segments() == 1 {
		return true
	}
	if r.messages >= r.maxEntries && i > 0 {
		return false
	}
	if first := int(r.number.Get(m) - r.una); first < i {
		if m = r.split(x, m, i-first); m == nil {
			return false
		}
	}
	return m.Segments() == 1 || r.split(x, m, 1) != nil
}
