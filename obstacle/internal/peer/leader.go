package peer

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
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
	lasted  bool          // another process could lead, at least once
	term    register.Term // the newest that is known; zero: the run has no keepers but the launcher
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

// lasting reports whether another process can lead if the leader is lost.
func (l *leader) lasting() bool { return len(l.newest().Keepers) > 1 }

// newest returns the newest term.
func (l *leader) newest() register.Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// adopt accepts a decided term. It reports whether it is the first one with which another process can lead.
func (l *leader) adopt(t register.Term) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Number > l.term.Number {
		l.term = t
	}
	first = !l.lasted && len(l.term.Keepers) > 1
	l.lasted = l.lasted || first
	return first
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

// Times of the search for the process that leads.
const (
	leadTime   = 5 * time.Second        // least bound of the search, see searchLimit
	askTime    = 3 * time.Second        // largest bound of one attempt, see attemptTime
	searchTime = 50 * time.Millisecond  // between two attempts
	turnTime   = 200 * time.Millisecond // after which the next keeper proposes itself
	voteTime   = time.Second            // least bound of one proposal; it is that of an attempt if that is longer
	roundsOver = 10                     // in which nothing listens anywhere, after which the search ends
)

// findLeader searches for the process that leads after the loss of the leader. It returns nil if there is none, or if
// the run goes on without this peer. If this process is a keeper, it may lead the run itself.
func (p *peer) findLeader(ctx context.Context) *rendezvous.Conn {
	lost := p.keeping.newest(p.leader.newest())
	p.leader.adopt(lost)
	if !p.leader.lasting() || p.leader.over() || closed(p.commands.lost) {
		return nil
	}
	p.log.Warn().Int("term", lost.Number).Msg("the leader of the run is lost: looking for the process that leads now")
	p.keeping.leaderReached(false)
	begin := time.Now()
	for round := 0; ; round++ {
		if p.keeping.turn(&lost, time.Since(begin)) {
			p.keeping.propose(ctx, p, lost)
		}
		p.leader.adopt(p.keeping.newest(p.leader.newest()))
		conn, address, err := p.askAll(ctx, p.candidates(&lost))
		if conn != nil {
			if !p.leader.replace(conn) {
				return nil
			}
			p.Options.Rendezvous = address
			p.keeping.leaderReached(true)
			return conn
		}
		_, refused := errors.AsType[*rendezvous.RefusedError](err)
		over := errors.Is(err, errNobody) && round > roundsOver
		late := time.Since(begin) > p.searchLimit()
		if refused || over || late || ctx.Err() != nil || p.leader.over() {
			p.log.Warn().Err(err).Msg("no process that leads the run takes this peer back")
			p.commands.alone = err
			return nil
		}
		select {
		case <-time.After(searchTime):
		case <-ctx.Done():
		}
	}
}

// errNobody is the error of a search at hosts that answer, where no process listens.
var errNobody = errors.New("nothing listens at the addresses of the keepers")

// askAll asks processes for the place that this peer has in the run, all at once. It returns the connection to the one
// that leads, and its address. Otherwise the error is a RefusedError if the run goes on without this peer.
func (p *peer) askAll(ctx context.Context, addresses []string) (*rendezvous.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime(p.suspect()))
	defer cancel()
	type answer struct {
		conn    *rendezvous.Conn
		address string
		err     error
	}
	answers := make(chan answer)
	for _, address := range addresses {
		go func() {
			conn, err := p.goBack(ctx, address)
			answers <- answer{conn, address, err}
		}()
	}
	var found answer
	worst, nobody := error(nil), true
	for range addresses {
		a := <-answers
		switch _, refused := errors.AsType[*rendezvous.RefusedError](a.err); {
		case a.conn != nil && found.conn != nil:
			a.conn.Close()
		case a.conn != nil:
			found = a
			cancel() // the others need not answer
		case refused || worst == nil:
			worst = a.err
		}
		nobody = nobody && errors.Is(a.err, syscall.ECONNREFUSED)
	}
	if found.conn == nil && nobody {
		worst = errNobody
	}
	return found.conn, found.address, worst
}

// attemptTime bounds one attempt to find the process that leads. A lost leader that does not even refuse a connection
// must not use up the time in which peers have to return to the next one, which is twice suspect.
func attemptTime(suspect time.Duration) time.Duration { return min(askTime, cmp.Or(suspect, askTime)) }

// searchLimit bounds the search. It is not shorter than the process that leads then waits for peers to return.
func (p *peer) searchLimit() time.Duration { return max(leadTime, p.timeout(), p.silence()) }

// suspect returns the silence after which the run gives up a host.
func (p *peer) suspect() time.Duration { return p.welcome.Spec.Suspect }

// silence returns after which silence of its host the leader counts as lost.
func (p *peer) silence() time.Duration {
	if !p.leader.lasting() {
		return p.timeout() + launch.StopTime
	}
	return 2 * p.suspect()
}

// candidates returns the addresses of the processes that may lead the run after a term.
func (p *peer) candidates(lost *register.Term) (out []string) {
	now := p.leader.newest()
	for _, address := range slices.Concat([]string{now.Leader}, now.Keepers, lost.Keepers) {
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// goBack asks a process for the place that this peer has in the run.
func (p *peer) goBack(ctx context.Context, address string) (*rendezvous.Conn, error) {
	c, err := rendezvous.Dial(ctx, askTime, address)
	if err != nil {
		return nil, err
	}
	conn := rendezvous.NewConn(c, 0)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	name, _ := os.Hostname()
	_, err = conn.Join(p.Identity, rendezvous.Join{
		Rank: p.welcome.Rank, Host: name, Pid: os.Getpid(), Addresses: driver.Addresses(p.Listen), Standing: p.standing(),
	}, max(leadTime, p.timeout()))
	if err == nil {
		err = conn.CloseWhenDead(p.silence())
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// standing returns the state of this peer for a process that begins to lead. The peer ends no time step before that
// process asks for the ends of steps.
func (p *peer) standing() *rendezvous.Standing {
	s := &rendezvous.Standing{
		Epoch: p.commands.newest(), Valued: p.values.known(), Sweep: uint64(p.values.progress().Sweep),
		Cluster: p.welcome.Cluster, Steps: p.ends.freeze(),
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
