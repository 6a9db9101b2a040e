package launch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// maxStrangers bounds the connections of strangers that have not been sent away yet; see
// driver.Pending.
const maxStrangers = 64

// maxRefusals bounds the lines of log that strangers can cause.
const maxRefusals = 32

// gather lets the peers join.
func (r *run) gather() error {
	address := r.Address
	if r.Spawn != nil {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("no rendezvous at %s: %w (--rendezvous names an address and a free port of this host)", address, err)
	}
	r.listener = l
	go r.admit(l)
	if r.Spawn != nil {
		if err := r.spawn(); err != nil {
			return err
		}
	} else if r.Notes != nil {
		fmt.Fprintf(r.Notes, "waiting for %d peers at %s: obstacle peer --rendezvous %s --secret-file FILE\n", len(r.members), l.Addr(), l.Addr())
	}
	r.joining = true
	defer func() { r.joining = false }()
	return r.until("join", r.JoinTime, func() int {
		missing := 0
		for _, m := range r.members {
			if m.control == "" {
				missing++
			}
		}
		return missing
	})
}

func (r *run) spawn() error {
	for _, m := range r.members {
		c, err := r.Spawn(r.ctx, m.rank, r.listener.Addr().String())
		if err != nil {
			return fmt.Errorf("starting peer %d: %w", m.rank, err)
		}
		m.child, m.ended = c, make(chan struct{})
		go func() {
			err := c.Wait()
			close(m.ended)
			r.emit(occurrence{of: m, exited: true, exit: err})
		}()
	}
	return nil
}

// admit greets every connection until the run is over. Strangers and peers that do not
// match are refused; connections that do not come to the point make room for newer ones.
func (r *run) admit(l net.Listener) {
	pending := driver.NewPending(r.strangers())
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			r.Log.Warn().Err(err).Msg("rendezvous")
			select {
			case <-time.After(10 * time.Millisecond): // out of descriptors, say
				continue
			case <-r.over:
				return
			}
		}
		pending.Add(c)
		go r.greet(c, pending)
	}
}

// strangers bounds the connections that have not been admitted yet: all peers may come at once.
func (r *run) strangers() int { return maxStrangers + len(r.members) }

// greet does the launcher's half of the greeting.
func (r *run) greet(c net.Conn, pending *driver.Pending) {
	conn := rendezvous.NewConn(c, r.PeerTimeout)
	j, err := conn.Admit(r.Identity)
	if !pending.Remove(c) {
		err = fmt.Errorf("%s sent no greeting: closed to make room, as more than %d connections waited",
			conn.Remote(), r.strangers())
	}
	if err != nil {
		if n := r.refused.Add(1); n <= maxRefusals {
			r.Log.Warn().Msg(err.Error())
		} else if n == maxRefusals+1 {
			r.Log.Warn().Msg("more strangers and refused peers are not logged")
		}
		conn.Close()
		return
	}
	if !r.emit(occurrence{joined: conn, join: j}) {
		conn.Close()
	}
}

// attend reads what a peer sends, places its block, and passes on the rest.
func (r *run) attend(m *member) {
	defer close(m.attended)
	var at, stepAt int64
	step := 1
	for {
		msg, err := m.conn.Receive(rendezvous.KindListen, rendezvous.KindReady, rendezvous.KindBeat, rendezvous.KindChunk, rendezvous.KindResult, rendezvous.KindSessions, rendezvous.KindStep, rendezvous.KindBlock)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("end of stream")
			}
			r.emit(occurrence{of: m, closed: err})
			return
		}
		if b, is := msg.(rendezvous.Block); is {
			err := errors.New("it has begun to come")
			switch {
			case b.Stream == rendezvous.StreamSolution && at == 0:
				err = r.claims.claim(m.rank, b.Box())
			case b.Stream == rendezvous.StreamStep && stepAt == 0 && r.series != nil:
				m.held.Store(true)
				err = r.series.claim(step, m.rank, b.Box())
				m.held.Store(false)
			}
			if err != nil {
				m.conn.Close()
				r.emit(occurrence{of: m, closed: fmt.Errorf("its box cannot be: %w", err)})
				return
			}
			if b.Stream == rendezvous.StreamSolution {
				r.emit(occurrence{of: m, message: b})
			}
			continue
		}
		if s, is := msg.(rendezvous.Step); is {
			if err := r.stepDone(m, s, step, stepAt); err != nil {
				m.conn.Close()
				r.emit(occurrence{of: m, closed: err})
				return
			}
			step, stepAt = step+1, 0
		}
		c, is := msg.(rendezvous.Chunk)
		if !is {
			r.emit(occurrence{of: m, message: msg})
			continue
		}
		err = errors.New("it is out of order")
		if c.Stream == rendezvous.StreamStep && c.Offset == stepAt && r.series != nil {
			m.held.Store(true)
			err = r.series.put(step, m.rank, c.Offset, c.Data)
			m.held.Store(false)
			if stepAt += int64(len(c.Data)); err == nil {
				continue
			}
		} else if c.Stream == rendezvous.StreamSolution && c.Offset == at {
			err = blocks.Put(r.vector(), r.Problem.N, r.claims.box(m.rank), c.Offset, c.Data)
		}
		if err != nil {
			m.conn.Close()
			r.emit(occurrence{of: m, closed: fmt.Errorf("a piece of its block cannot be placed: %w", err)})
			return
		}
		at += int64(len(c.Data))
		r.emit(occurrence{of: m, bytes: int64(len(c.Data))})
	}
}

// assign hands out the work and waits until every peer is ready to relax.
func (r *run) assign() error {
	if err := r.reachable(); err != nil {
		return err
	}
	problem := r.Spec.Marshal()
	members := make([]rendezvous.Member, len(r.members))
	for i, m := range r.members {
		members[i] = rendezvous.Member{Rank: i, Host: m.join.Host, Pid: m.join.Pid, Control: m.control, Cluster: m.label}
	}
	for _, m := range r.members {
		a := r.assignment(m, members, int64(len(problem)))
		go func() {
			if err := r.handOut(m, a, problem); err != nil {
				r.emit(occurrence{of: m, sent: err})
			}
		}()
	}
	return r.until("get ready", 0, func() int {
		missing := 0
		for _, m := range r.members {
			if !m.ready {
				missing++
			}
		}
		return missing
	})
}

// reachable finds peers that the others could not call: a run over several hosts
// with one of them on loopback.
func (r *run) reachable() error {
	for _, m := range r.members {
		host, _, err := net.SplitHostPort(m.control)
		if err != nil {
			return fmt.Errorf("%s gave the control address %q: %w", m, m.control, err)
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
			continue
		}
		for _, other := range r.members {
			if other.join.Host != m.join.Host {
				return fmt.Errorf("%s listens on loopback only, but %s is on another host: start it with --listen and an address of its network", m, other)
			}
		}
	}
	return nil
}

func (r *run) assignment(m *member, members []rendezvous.Member, problemBytes int64) rendezvous.Assign {
	slow := 1.0
	if f, is := r.Slow[m.rank]; is {
		slow = f
	}
	return rendezvous.Assign{
		Members: members,
		Problem: r.Spec.Name(), ProblemBytes: problemBytes, Fingerprint: r.problemHash(),
		N: r.Problem.N, Cuts: r.Partition.Cuts,
		Scheme: r.Scheme, Method: rendezvous.Method(r.Method), Order: r.Order, Tolerance: r.Tolerance, MaxSweeps: r.MaxSweeps, MaxTimeMS: r.MaxTime.Milliseconds(),
		Threads: r.Threads, Slow: slow,
		Initial: r.Initial != nil, Balance: r.Balance, Reconfigure: r.Reconfigure, Status: r.Status != nil,
	}
}

func (r *run) handOut(m *member, a rendezvous.Assign, problem []byte) error {
	if err := m.conn.Send(a); err != nil {
		return err
	}
	for at := 0; at < len(problem); at += rendezvous.MaxChunk {
		piece := problem[at:min(at+rendezvous.MaxChunk, len(problem))]
		if err := m.conn.Send(rendezvous.Chunk{Stream: rendezvous.StreamProblem, Offset: int64(at), Data: piece}); err != nil {
			return err
		}
	}
	if r.Initial == nil {
		return nil
	}
	buf := make([]byte, rendezvous.MaxChunk)
	for at := int64(0); at < blocks.Bytes(m.box); {
		piece := buf[:min(int64(len(buf)), blocks.Bytes(m.box)-at)]
		if err := blocks.Get(piece, r.Initial, r.Problem.N, m.box, at); err != nil {
			return err
		}
		if err := m.conn.Send(rendezvous.Chunk{Stream: rendezvous.StreamInitial, Offset: at, Data: piece}); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}
