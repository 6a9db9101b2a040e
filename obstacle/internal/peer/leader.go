package peer

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// leader is the connection to the process that leads the run: the launcher, or the one that leads after its loss.
type leader struct {
	mu      sync.Mutex
	conn    *rendezvous.Conn
	changed chan struct{} // closed when conn is replaced
	gone    chan struct{} // closed when nobody leads
	watched bool          // receive searches for another leader if this one is lost
	closed  bool
}

func newLeader(conn *rendezvous.Conn) *leader {
	return &leader{conn: conn, changed: make(chan struct{}), gone: make(chan struct{})}
}

// current returns the connection, and a channel that is closed when another one replaces it.
func (l *leader) current() (*rendezvous.Conn, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.changed
}

// now returns the connection.
func (l *leader) now() *rendezvous.Conn {
	conn, _ := l.current()
	return conn
}

// local returns the address of this end of the connection.
func (l *leader) local() string { return l.now().Local() }

// Send sends a message, which is dropped if the leader is lost and another process leads then: it learns the state of
// the peer from its standing. Send blocks until one leads. It returns an error if none does, or nothing searches for it
// yet or any more.
func (l *leader) Send(m rendezvous.Message) error {
	conn, changed := l.current()
	err := conn.Send(m)
	if err == nil {
		return nil
	}
	if !l.searches() {
		return err
	}
	conn.Close() // receive notices it, too, and searches for the process that leads then
	select {
	case <-changed:
		return nil
	case <-l.gone:
		return err
	}
}

// watch states that receive begins, and searches for another leader if this one is lost.
func (l *leader) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = true
}

func (l *leader) searches() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched
}

// replace uses another connection. It closes conn and returns false if the peer has ended.
func (l *leader) replace(conn *rendezvous.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.Close()
	if l.closed {
		conn.Close()
		return false
	}
	l.conn = conn
	close(l.changed)
	l.changed = make(chan struct{})
	return true
}

// end ends all calls of Send that wait, since no process leads the run.
func (l *leader) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	closeOnce(l.gone)
}

// close closes the connection for good, and ends all calls of Send that wait.
func (l *leader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	closeOnce(l.gone)
	l.conn.Close()
}

// over reports whether close was called.
func (l *leader) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// askAll asks processes for the place that this peer has in the run, all at once. It returns the connection to the one
// that leads, and its address. Otherwise the error is a RefusedError if the run goes on without this peer.
func (p *peer) askAll(ctx context.Context, a member.Ask) (*rendezvous.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	type answer struct {
		conn    *rendezvous.Conn
		address string
		err     error
	}
	answers := make(chan answer)
	for _, address := range a.Addresses {
		go func() {
			conn, err := p.goBack(ctx, address, a)
			answers <- answer{conn, address, err}
		}()
	}
	var found answer
	worst, nobody := error(nil), true
	for range a.Addresses {
		got := <-answers
		switch _, refused := errors.AsType[*rendezvous.RefusedError](got.err); {
		case got.conn != nil && found.conn != nil:
			got.conn.Close()
		case got.conn != nil:
			found = got
			cancel() // the others need not answer
		case refused || worst == nil:
			worst = got.err
		}
		nobody = nobody && errors.Is(got.err, syscall.ECONNREFUSED)
	}
	switch {
	case found.conn != nil:
		return found.conn, found.address, nil
	case nobody:
		return nil, "", member.ErrNobody
	}
	return nil, "", worst
}

// goBack asks a process for the place that this peer has in the run.
func (p *peer) goBack(ctx context.Context, address string, a member.Ask) (*rendezvous.Conn, error) {
	c, err := rendezvous.Dial(ctx, member.AskTime, address)
	if err != nil {
		return nil, err
	}
	conn := rendezvous.NewConn(c, 0)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	name, _ := os.Hostname()
	_, err = conn.Join(p.Identity, rendezvous.Join{
		Rank: p.welcome.Rank, Host: name, Pid: os.Getpid(), Addresses: driver.Addresses(p.Listen), Standing: p.standing(&a),
	}, max(member.LeadTime, p.timeout()))
	if err == nil {
		err = conn.CloseWhenDead(a.Silence)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// standing returns the state of this peer for a process that begins to lead. The peer ends no time step before that
// process asks for the ends of steps.
func (p *peer) standing(a *member.Ask) *rendezvous.Standing {
	s := &rendezvous.Standing{
		Epoch: a.Epoch, Valued: p.values.known(), Sweep: uint64(p.values.progress().Sweep),
		Cluster: p.welcome.Cluster, Steps: a.Steps,
	}
	s.Settled = p.settled.Load() == int64(s.Epoch)
	if l := p.listening.Load(); l != nil {
		s.Control = l.Control
	}
	if b := p.progress.Load(); b != nil {
		s.Sweep = max(s.Sweep, uint64(b.Sweep))
	}
	return s
}
