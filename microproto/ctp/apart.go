package ctp

import "github.com/p2pdc/p2pdc/microproto"

// A train goes, and is acknowledged, as one. Where its segments have different fates
// it is cut in two, or three.

// trainCut is raised to have a train cut that Retransmit keeps: by a window that ends
// within it.
var trainCut = microproto.NewEvent[*cutting]("ctp.train.cut")

// cutting is such a wish: the first k segments stay in m, the others go to rest; nil:
// there was no message for them.
type cutting struct {
	m    *microproto.Message
	k    int
	rest *microproto.Message
}

// split cuts a train before its segment k and notes who has which entries; nil: there is
// no message for that now.
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
		r.entries.at(i).m = t
	}
	return t
}

// whole is how many of the first n segments can be let go: of a train of which only a
// part is acknowledged that part is cut off, or else it is kept whole.
func (r *Retransmit) whole(x *microproto.Exec, n int) int {
	if n == 0 || n >= r.entries.n || r.entries.at(n-1).m != r.entries.at(n).m {
		return n
	}
	m := r.entries.at(n).m
	first := int(r.number.Get(m) - r.una)
	if r.split(x, m, n-first) == nil {
		return first
	}
	return n
}

// alone makes segment i, which is to be sent again, a message of its own; false: there
// is none for it now. Half of the pool is left for what comes in, but for the oldest
// segment: when that has been acknowledged there will be others.
func (r *Retransmit) alone(x *microproto.Exec, i int) bool {
	m := r.entries.at(i).m
	if m.Segments() == 1 {
		return true
	}
	if r.messages >= r.most && i > 0 {
		return false
	}
	if first := int(r.number.Get(m) - r.una); first < i {
		if m = r.split(x, m, i-first); m == nil {
			return false
		}
	}
	return m.Segments() == 1 || r.split(x, m, 1) != nil
}
