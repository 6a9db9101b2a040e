package p2psap

import "github.com/p2pdc/p2pdc/microproto"

// reservation is memory of a link for the next message of a session. A synchronous message takes it over. That of an
// asynchronous one is given back by the next Reserve: until the caller of the node has drained it, the message may refer
// to the memory.
type reservation struct {
	link microproto.Reserver // nil: there is none
	data []byte
}

// of returns the link at which data was reserved; nil: it is other memory.
func (r *reservation) of(data []byte) microproto.Reserver {
	if r.link == nil || len(data) == 0 || &data[0] != &r.data[0] {
		return nil
	}
	return r.link
}

func (s *session) unreserve() {
	if r := &s.reserved; r.link != nil {
		r.link.Unreserve(r.data)
		*r = reservation{}
	}
}

// Reserve returns memory of the session's link for the next message of a tag, of that many bytes; see Socket. It returns
// nil if the link has none.
func (n *Node) Reserve(id SessionID, tag Tag, length int) []byte {
	s, err := n.active(id)
	if err != nil || length <= 0 || s.slot(tag) < 0 {
		return nil
	}
	s.unreserve()
	c := s.channel
	link, ok := c.Rail.Link.(microproto.Reserver)
	if !ok || s.sealed { // sealing copies
		return nil
	}
	data := link.Reserve(c.addr(s), c.mode(), s.valueBase(tag)+1, c.composite.HeaderBytes(), length)
	if data != nil {
		s.reserved = reservation{link, data}
	}
	return data
}
