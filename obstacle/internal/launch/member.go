package launch

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// connection is the number of a connection; 0: none.
type connection int

// child is the number of a process that this one has started; 0: none.
type child int

// caller is a process that has connected.
type caller struct {
	conn   connection
	join   rendezvous.Join
	remote string // address of its end
	here   string // address at which it reaches this process
}

// member is a peer as the launcher sees it.
type member struct {
	rank     int
	box      problem.Box // as assigned
	final    problem.Box // of its final values
	held     problem.Box // of the values that it had at the end of the epoch before
	hole     problem.Box // the part of box that it has to repair, in a run that moves planes
	caller               // zero before it joins
	child    child       // 0 if it was started by hand
	name     string      // of the child, for the user
	starting bool        // a child
	label    string      // of its cluster; "": to be measured

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
	steps      []int               // of whose ends it had its block when it returned
	quietTicks int                 // ticks since its last message
	stillTicks int                 // ticks since it has relaxed or sent anything but a Beat, after a request to stop
	severed    *rendezvous.Severed // as in its last Beat; nil: it exchanges values with all its neighbours
	result     *rendezvous.Result
	received   int64  // bytes of its block
	seen       *sight // what the kernel knew of it at the last tick; nil: it was not asked
	blocked    bool   // its connection is not read, as there is no room for its block
	gone       bool   // its connection has ended
	closed     error  // why, while the exit status of its process is awaited
	exited     bool   // its process has ended
	exit       error  // its exit status
}

// String identifies the peer to the user.
func (m *member) String() string {
	switch {
	case m.conn != 0 && m.child == 0:
		return fmt.Sprintf("peer %d (pid %d on %s)", m.rank, m.join.Pid, m.join.Host)
	case m.child != 0:
		return fmt.Sprintf("peer %d (%s)", m.rank, m.name)
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

// done reports whether nothing more is expected from the peer.
func (m *member) done() bool { return m.result != nil || m.gone }

// missing reports whether its block is incomplete.
func (m *member) missing() bool { return m.result == nil || m.received != blocks.Bytes(m.final) }

// tick is what decisions that are due at a tick need to know.
type tick struct {
	seen     []sight            // answers to look
	blocked  []*member          // whose connection is not read, as there is no room for the block
	captures bool               // an iterate of the whole grid is wanted
	sample   *rendezvous.Sample // values that are wanted; nil: none
}

// sight is what the kernel knows of a peer that is silent.
type sight struct {
	of      *member
	stopped bool          // its process, which this one has started
	known   bool          // silent is
	silent  time.Duration // for how long its host has acknowledged nothing, see rendezvous.Conn.HostSilent
}

// timeSteps are the ends of time steps that have arrived.
type timeSteps struct {
	done    int   // number of complete steps, with those before the run
	over    bool  // every step is complete
	missing []int // ranks whose blocks are needed for the first end that is known; nil: one is known
}

// started is the answer to start.
type started struct {
	name string // of the process, for the user
	err  error
}

// request is what a user asks for.
type request int

const (
	toStop request = iota + 1 // with the best iterate
	toEnd                     // at once
)

// event is an input of a run. The launcher handles events one by one.
type event struct {
	of        *member // nil if joined or decided is set
	joined    *caller
	message   rendezvous.Message // never a Chunk
	values    []float64          // of a Captured
	bytes     int64              // of the peer's block, now placed
	closed    error              // the connection ended
	child     child              // that ended, with exited, or was started
	exited    bool               // the child ended
	exit      error
	blocked   bool // of a peer whose child has ended: its connection is not read
	tick      *tick
	asked     request        // of the user
	started   *started       // an answer to start
	refused   error          // the peer could not be welcomed
	restarted bool           // an answer to restartSteps
	steps     timeSteps      // of a problem in time, at the event
	decided   *register.Term // answer to a proposal; zero: the proposal could not be decided
}
