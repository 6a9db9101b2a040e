package ctp

import "github.com/p2pdc/p2pdc/microproto"

// posted is memory in which a user waits for the next message of a tag. Resize assembles the
// message there, so that it is copied once.
type posted struct {
	dst      []byte
	tag      uint32
	on       bool   // memory is posted
	claimed  bool   // a message is being assembled there
	withdraw func() // set by Resize: moves an incomplete message to other memory
	claims   func(m *microproto.Message) bool
}

// claims reports whether the message that begins with m is the one that the user waits for.
func (s *Synchronous) claims(m *microproto.Message) bool {
	p, total := s.posted, int(s.total.Get(m))
	if s.tag.Get(m) != p.tag || reservedTag(p.tag) || total == 0 || total > len(p.dst) {
		return false
	}
	q := s.find(p.tag)
	return q == nil || q.messages.Len() == 0
}

// Post implements microproto.Poster. It does nothing if this memory is posted already: a Receive that is woken before
// its message is complete posts again, and the part that has arrived stays in place.
func (s *Synchronous) Post(tag uint32, dst []byte) {
	if p := s.posted; p.on && p.tag == tag && len(p.dst) == len(dst) && len(dst) > 0 && &p.dst[0] == &dst[0] {
		return
	}
	s.Withdraw()
	s.posted.dst, s.posted.tag, s.posted.on = dst, tag, true
}

// Withdraw implements microproto.Poster: a message, complete or not, moves from the posted
// memory to memory of the channel.
func (s *Synchronous) Withdraw() {
	p := s.posted
	if !p.on {
		return
	}
	p.withdraw()
	if q := s.find(p.tag); q != nil && q.messages.Len() > 0 {
		if m := q.messages.Front(); m.posted {
			m.data, m.posted = s.buffers.clone(m.data, m.length), false
		}
	}
	s.clearPost()
}

func (s *Synchronous) clearPost() {
	s.posted.dst = nil
	s.posted.on, s.posted.claimed = false, false
}

// evictPosted moves the message that is being assembled to memory of the channel.
func (r *Resize) evictPosted() {
	if !r.assembling || !r.message.posted {
		return
	}
	c := &r.message.contents
	c.data, c.posted = r.buffers.clone(c.data[:r.received], c.length), false
}

// begin chooses the posted memory for the message of n bytes that begins with m, if that is what the user waits for.
func (r *Resize) begin(m *microproto.Message, n int) {
	r.received = 0
	r.assembling = true
	r.message.length = n
	if p := r.posted; p.on && !p.claimed && p.claims(m) {
		p.claimed = true
		r.message.data, r.message.posted = p.dst[:n:n], true
	}
}
