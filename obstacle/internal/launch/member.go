package launch

import (
	"fmt"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/buddy"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// member is a peer as the launcher sees it.
type member struct {
	rank  int
	box   problem.Box      // as assigned
	final problem.Box      // of its final values
	held  problem.Box      // of the values that it had at the end of the epoch before
	hole  problem.Box      // the part of box that it has to repair, in a run that moves planes
	conn  *rendezvous.Conn // nil before it joins
	child Child            // nil if it was started by hand
	join  rendezvous.Join
	label string // of its cluster; "": to be measured

	out     chan rendezvous.Message // to be sent, in order; it may hold a parcel
	written chan struct{}           // closed after the last write to conn
	served  chan struct{}           // closed after the last read from conn
	ended   chan struct{}           // closed when the child has ended

	control    string  // address of its control channel
	seated     int     // epoch in which it got its place
	since      int     // epoch in which it was listed first
	listens    int     // epoch of control
	listed     int     // epoch of the newest list of peers that it has
	ready      bool    // for the epoch
	idle       bool    // it does not relax until the epoch begins
	informed   bool    // it has the problem
	assigned   bool    // it has the work of the epoch
	valued     bool    // it has values of its box
	lost       bool    // another peer has taken its place
	moved      bool    // another process runs its part
	awaited    bool    // a process is about to join in place of the peer that was lost before
	host       *member // the peer whose process was asked to be that process; nil: none
	attempts   int     // to find one
	asked      bool    // to be a keeper
	declined   bool    // it cannot be one
	keeps      string  // its address as a keeper; empty: it is none
	reserved   bool    // its process is that of another peer, which has not joined
	guests     []int   // ranks for which its process runs peers, too, once it has joined
	former     process // of the peer that was lost
	carried    uint64  // points that former peers of the rank have relaxed
	own        uint64  // points that this one has relaxed in former epochs
	relaxed    uint64  // points, in the epoch
	busy       float64 // seconds that this has taken
	sweep      uint64  // newest that is known
	omega      float64 // found by the peer, at its last sweep of an epoch that has ended; 0: none
	holding    *buddy.Holding
	steps      []int // of whose ends it had its block when it returned
	quietTicks int   // ticks since its last message
	result     *rendezvous.Result
	received   int64       // bytes of its block
	passing    atomic.Bool // copies of other peers' blocks are about to be sent to it
	blocked    atomic.Bool // the launcher does not read from it, as there is no room for its block
	gone       bool        // its connection has ended
	closed     error       // why, while the exit status of its process is awaited
	exited     bool        // its process has ended
	exit       error       // its exit status
}

// String identifies the peer to the user.
func (m *member) String() string {
	switch {
	case m.conn != nil && m.child == nil:
		return fmt.Sprintf("peer %d (pid %d on %s)", m.rank, m.join.Pid, m.join.Host)
	case m.child != nil:
		return fmt.Sprintf("peer %d (%s)", m.rank, m.child.Name())
	}
	return fmt.Sprintf("peer %d", m.rank)
}

// progressed records how much the peer has relaxed in the epoch.
func (m *member) progressed(points uint64, busy float64) {
	if points < m.relaxed { // a new epoch
		m.own += m.relaxed
	}
	m.relaxed, m.busy = points, busy
}

// successor returns the member that follows when another process takes the place of the peer's.
func (m *member) successor() *member {
	return &member{
		rank: m.rank, box: m.box, final: m.box, sweep: m.sweep, former: processOf(m), carried: m.carried + m.own + m.relaxed,
	}
}

// process identifies the process of the peer to the user.
func (m *member) process() string { return fmt.Sprintf("pid %d on %s", m.join.Pid, m.join.Host) }

// entry returns the peer as Assign lists it.
func (m *member) entry() rendezvous.Member {
	return rendezvous.Member{Rank: m.rank, Host: m.join.Host, Pid: m.join.Pid, Control: m.control, Cluster: m.label,
		PidSpace: m.join.PidSpace}
}

// parcel is several messages to a peer, which are sent together.
type parcel interface{ send(m *member) error }

// outbox bounds the messages to a slow peer that wait.
const outbox = 64

// write sends the messages of out, that of the member at its beginning, in a goroutine so that a stopped peer does not delay others.
func (m *member) write(out <-chan rendezvous.Message) {
	defer close(m.written)
	defer exitOnPanic()
	for msg := range out {
		var err error
		if p, is := msg.(parcel); is {
			err = p.send(m)
		} else {
			err = m.conn.Send(msg)
		}
		if err != nil {
			m.conn.Close() // serve sees the end of the connection
			return
		}
	}
}

// notify queues a message to the peer and does not block.
func (m *member) notify(msg rendezvous.Message) {
	if m.out == nil {
		return // it was lost
	}
	select {
	case m.out <- msg:
	default: // the queue of a stopped peer is full: it will time out
	}
}

// done reports whether nothing more is expected from the peer.
func (m *member) done() bool { return m.result != nil || m.gone }

// missing reports whether its block is incomplete.
func (m *member) missing() bool { return m.result == nil || m.received != blocks.Bytes(m.final) }

// over reports whether the process of a lost peer has ended and its connection is no longer used.
func (m *member) over() bool {
	return isClosed(m.written) && isClosed(m.served) && (m.child == nil || isClosed(m.ended))
}

// isClosed reports whether a channel is closed or nil.
func isClosed(c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// event is an input of a run. The launcher handles events one by one.
type event struct {
	of      *member          // nil if joined is set
	joined  *rendezvous.Conn // with join
	join    rendezvous.Join
	message rendezvous.Message // never a Chunk
	values  []float64          // of a Captured
	bytes   int64              // of the peer's block, now placed
	closed  error              // the connection ended
	child   Child              // that ended, with exited
	exited  bool               // the child ended
	exit    error
	decided *register.Term // answer to a proposal; zero: the proposal could not be decided
}
