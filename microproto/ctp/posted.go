package ctp

import "github.com/p2pdc/p2pdc/microproto"

// posted is a place in which a user waits for the next message of a tag. Resize puts
// that message together there, so that it is copied once. Resize declares the cell.
type posted struct {
	dst      []byte
	tag      uint32
	on       bool   // there is one
	claimed  bool   // a message has begun there
	withdraw func() // by Resize: what lies there and is not whole moves elsewhere
	claims   func(m *microproto.Message) bool
}

// claims tells whether the message that begins with m is the one that is waited for.
func (s *Synchronous) claims(m *microproto.Message) bool {
	p, total := s.posted, int(s.total.Get(m))
	if s.tag.Get(m) != p.tag || ownTag(p.tag) || total == 0 || total > len(p.dst) {
		return false
	}
	for i := range s.queues {
		if s.queues[i].tag == p.tag && s.queues[i].messages.n > 0 {
			return false
		}
	}
	return true
}

// Post implements microproto.Poster.
func (s *Synchronous) Post(tag uint32, dst []byte) {
	s.Withdraw()
	p := s.posted
	p.dst, p.tag, p.on = dst, tag, true
}

// Withdraw implements microproto.Poster: a message that lies in the place, or a part of
// one, moves to memory of its own.
func (s *Synchronous) Withdraw() {
	p := s.posted
	if !p.on {
		return
	}
	p.withdraw()
	for i := range s.queues {
		if q := &s.queues[i]; q.tag == p.tag && q.messages.n > 0 && q.messages.front().posted {
			m := q.messages.front()
			data := s.buffers.get(len(m.data))
			copy(data, m.data)
			m.data, m.posted = data, false
		}
	}
	s.forgetPost()
}

func (s *Synchronous) forgetPost() {
	s.posted.dst, s.posted.on, s.posted.claimed = nil, false, false
}

// moveOut gives the message that is being put together memory of its own.
func (r *Resize) moveOut() {
	if !r.busy || !r.whole.Posted {
		return
	}
	data := r.buffers.get(len(r.whole.Data))
	copy(data, r.whole.Data[:r.have])
	r.whole.Data, r.whole.Posted = data, false
}

// begin takes memory for the message of n bytes that begins with m.
func (r *Resize) begin(m *microproto.Message, n int) {
	r.have, r.busy = 0, true
	if p := r.posted; p.on && !p.claimed && p.claims(m) {
		p.claimed = true
		r.whole.Data, r.whole.Posted = p.dst[:n:n], true
		return
	}
	r.whole.Data = r.buffers.get(n)
}
