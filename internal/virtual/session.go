package virtual

import (
	"errors"
	"strconv"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// session is an exchange.Session of the host's node.
type session struct {
	h       *Host
	id      p2psap.SessionID
	to      *exchange.Neighbour
	halo    bool
	adapted uint64 // number of the newest change of mode
}

// open opens a session; nil: the node has refused.
func (h *Host) open(n *exchange.Neighbour, halo bool, o p2psap.OpenOptions) exchange.Session {
	id, err := h.Node.Open(h.world.Now(), n.Name, o)
	h.fail(err)
	s := &session{h: h, id: id, to: n, halo: halo}
	i := place(id)
	for i >= len(h.sessions) {
		h.sessions = append(h.sessions, nil)
	}
	h.sessions[i] = s
	return s
}

// place returns the index of a session in its node.
func place(id p2psap.SessionID) int { return int(id & 0xffff) }

// Sessions calls f with the session of every neighbour, and whether it carries faces.
func (h *Host) Sessions(f func(id p2psap.SessionID, halo bool)) {
	for _, s := range h.sessions {
		if s != nil {
			f(s.id, s.halo)
		}
	}
}

// Receive implements exchange.Session.
func (s *session) Receive(slot *p2psap.Slot, waits bool) (p2psap.Arrival, error) {
	a, err := s.h.Node.Receive(s.h.world.Now(), s.id, slot)
	return s.received(a, err, waits)
}

// View implements exchange.Session.
func (s *session) View(tag p2psap.Tag, v *p2psap.View, waits bool) (p2psap.Arrival, error) {
	a, err := s.h.Node.ReceiveView(s.h.world.Now(), s.id, tag, v)
	return s.received(a, err, waits)
}

// received charges the time of receiving a message.
func (s *session) received(a p2psap.Arrival, err error, waits bool) (p2psap.Arrival, error) {
	h := s.h
	now := h.world.Now()
	switch {
	case errors.Is(err, p2psap.ErrNothing): // by far the most frequent
		return a, nil
	case err == nil && a.Fresh && (a.Complete || !s.halo):
		h.busy = max(h.busy, now).Add(h.world.Receives(h, waits))
	}
	return a, err
}

// Reserve implements exchange.Session.
func (s *session) Reserve(tag p2psap.Tag, n int) []byte { return s.h.Node.Reserve(s.id, tag, n) }

// Send implements exchange.Session.
func (s *session) Send(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	t, err := s.h.Node.Send(s.h.world.Now(), s.id, tag, label, data)
	if err == nil {
		s.h.Settle()
	}
	return t, err
}

// Accepted implements exchange.Session.
func (s *session) Accepted(t p2psap.Transfer) (bool, error) {
	return s.h.Node.Accepted(s.id) >= t, nil
}

// Adapt implements exchange.Session.
func (s *session) Adapt(mode microproto.Mode) (err error) {
	s.adapted, err = s.h.Node.Adapt(s.h.world.Now(), s.id, mode)
	return err
}

// Adapted implements exchange.Session.
func (s *session) Adapted() (bool, error) {
	done, err := s.h.Node.Adapted(s.id)
	if done < s.adapted {
		return false, nil
	}
	return true, err
}

// NameOf returns the name of a rank's node.
func NameOf(r iterate.Rank) string { return "peer" + strconv.Itoa(int(r)) }
