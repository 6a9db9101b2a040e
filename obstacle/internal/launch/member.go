package launch

import (
	"fmt"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// member is a peer as the launcher knows it.
type member struct {
	rank  int
	box   problem.Box      // as assigned
	final problem.Box      // that its values are of
	conn  *rendezvous.Conn // nil: has not joined
	child Child            // nil: started by hand
	join  rendezvous.Join
	label string // of its cluster; empty: to be found out

	out      chan rendezvous.Message // small messages on their way
	written  chan struct{}           // closed: nothing more is written to conn
	attended chan struct{}           // closed: nothing more is read from conn
	ended    chan struct{}           // closed: the child's process has ended

	control  string // where the others reach it
	ready    bool
	quiet    int // looks since its last message
	result   *rendezvous.Result
	received int64       // bytes of its block
	held     atomic.Bool // the launcher keeps it waiting
	gone     bool        // its connection has ended
	exited   bool        // its process has ended
	exit     error       // how
}

// String names the peer for people.
func (m *member) String() string {
	switch {
	case m.conn != nil && m.child == nil:
		return fmt.Sprintf("peer %d (pid %d on %s)", m.rank, m.join.Pid, m.join.Host)
	case m.child != nil:
		return fmt.Sprintf("peer %d (%s)", m.rank, m.child.Name())
	}
	return fmt.Sprintf("peer %d", m.rank)
}

// outbox bounds the messages that wait for a slow peer.
const outbox = 16

// write sends what is put into out; a stopped peer must not hold up the others.
func (m *member) write() {
	defer close(m.written)
	for msg := range m.out {
		if m.conn.Send(msg) != nil {
			return // attend sees the end of the connection, too
		}
	}
}

// tell sends to the peer without waiting for it.
func (m *member) tell(msg rendezvous.Message) {
	select {
	case m.out <- msg:
	default: // it has not read 16 messages: it is stopped, and will be found silent
	}
}

// done tells that nothing more is expected of the peer.
func (m *member) done() bool { return m.result != nil || m.gone }

// missing tells that its block did not come whole.
func (m *member) missing() bool { return m.result == nil || m.received != blocks.Bytes(m.final) }

// occurrence is something that happened to a run; the launcher handles them one
// by one.
type occurrence struct {
	of      *member          // nil: with joined
	joined  *rendezvous.Conn // with join
	join    rendezvous.Join
	message rendezvous.Message // never a Chunk
	bytes   int64              // of the peer's block, now placed
	closed  error              // the connection ended
	exited  bool               // the child ended
	exit    error
	sent    error // handing out the work failed
}
