package launch

import (
	"net"
	"slices"
	"testing"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// shellOf returns a shell of a run.
func shellOf(t testing.TB, r *run) *shell {
	s := &shell{run: r, ctx: t.Context(), done: make(chan struct{}), inputs: make(chan input, 16)}
	s.links, s.children = map[connection]*link{}, map[child]*offspring{}
	s.final.init()
	return s
}

// connect connects a peer, without goroutines.
func (s *shell) connect(m *member, c net.Conn) *link {
	s.newest.connection++
	m.conn = s.newest.connection
	l := &link{Conn: rendezvous.NewConn(c, 0), out: make(chan rendezvous.Message, outbox)}
	l.written, l.served = make(chan struct{}), make(chan struct{})
	s.links[m.conn] = l
	return l
}

// next removes the oldest message to a peer from the effects and returns it, nil if there is none.
func (r *run) next(m *member) rendezvous.Message {
	for i, e := range r.effects {
		if s, is := e.(send); is && s.to == m {
			r.effects = slices.Delete(r.effects, i, i+1)
			return s.msg
		}
	}
	return nil
}
