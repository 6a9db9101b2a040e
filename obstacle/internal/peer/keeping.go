package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// keeping is what a peer does as a keeper of the run. Its zero value is that of a peer that is none.
type keeping struct {
	mu       sync.Mutex
	keeper   *keep.Keeper // nil: this peer is no keeper
	log      zerolog.Logger
	identity rendezvous.Identity // of server
	server   *rendezvous.Server
	record   *rendezvous.Record // nil: none has arrived
	received time.Time          // of record
	ends     []launch.End       // of other peers
	done     chan struct{}      // closed when this process no longer leads; nil: it does not lead
	err      error              // of leading, valid after done is closed
}

// keep makes this peer a keeper, unless it is one already, and returns its address, "" if it cannot be one.
func (p *peer) keep(m rendezvous.Keep) string {
	k := &p.keeping
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.Bound {
		return ""
	}
	if k.keeper == nil {
		identity, err := p.Identity.WithListener(m.Listener)
		var l net.Listener
		if err == nil {
			l, err = p.listenForVotes()
		}
		if err != nil {
			p.log.Warn().Err(err).Msg("this peer cannot keep the register of the run")
			return ""
		}
		name, _ := os.Hostname()
		k.keeper = keep.New(p.ways(l.Addr()), p.Identity, rendezvous.Join{Rank: -1, Host: name, Pid: os.Getpid()},
			register.Term{})
		k.log, k.identity = p.log, identity
		k.server = rendezvous.Serve(l, identity, p.cut.Peers(), p.timeout(),
			func(text string) { p.log.Debug().Msg(text) }, k.admit) // peers that search for the leader give up often
	}
	return k.keeper.Address()
}

// listenForVotes listens at a port of the range of this peer.
func (p *peer) listenForVotes() (net.Listener, error) {
	low, high := p.PortLow, p.PortHigh
	if p.VotePort > 0 {
		low, high = p.VotePort, p.VotePort
	}
	for port := low; ; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(p.Listen, strconv.Itoa(port)))
		if err == nil || port >= high {
			return l, err
		}
	}
}

// admit handles a connection while this process does not lead.
func (k *keeping) admit(conn *rendezvous.Conn, j rendezvous.Join) {
	k.mu.Lock()
	keeper := k.keeper
	k.mu.Unlock()
	if j.Purpose == rendezvous.ToVote {
		keeper.Serve(conn)
		return
	}
	defer conn.Close()
	_ = conn.Send(rendezvous.Refuse{
		Reason: "this process does not lead the run", Later: true, Leader: keeper.Newest().Leader,
	})
}

// adopt accepts a decided term.
func (k *keeping) adopt(l member.Learn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeper == nil {
		return
	}
	if k.keeper.Adopt(l.Term); l.Leader && k.keeper.Newest().Leader == l.Term.Leader {
		k.keeper.LeaderReached(true)
	}
}

// newest returns the newest term that the keeper knows, zero if there is none.
func (k *keeping) newest() register.Term {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeper == nil {
		return register.Term{}
	}
	return k.keeper.Newest()
}

// take accepts what this process needs to lead the run.
func (k *keeping) take(rec *rendezvous.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record, k.received = rec, time.Now()
	k.log.Info().Int("term", rec.Term.Number).Msg("this process can lead the run")
}

// hold receives and holds the block of another peer at the end of a time step. Blocks of the step before are held, too.
func (p *peer) hold(m rendezvous.Held) error {
	if err := checkHeld(&m, p.cut, p.problem); err != nil {
		return err
	}
	u, err := p.receiveValues(rendezvous.StreamStep, m.Box.Points())
	if err != nil {
		return err
	}
	k := &p.keeping
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = slices.DeleteFunc(k.ends, func(e launch.End) bool {
		return e.Step != m.Step && e.Step != m.Step-1 || e.Step == m.Step && e.Rank == m.Rank
	})
	k.ends = append(k.ends, launch.End{Rank: m.Rank, Step: m.Step, Box: m.Box, U: u})
	k.log.Debug().Int("of", m.Rank).Int("step", m.Step).Msg("holding the block of a peer that may be lost with the leader")
	return nil
}

// checkHeld returns an error for a block that no peer of the run can have.
func checkHeld(m *rendezvous.Held, cut problem.Partition, p *problem.Problem) error {
	if p == nil || m.Rank < 0 || m.Rank >= cut.Peers() || m.Step < 0 || m.Step > p.Steps() {
		return fmt.Errorf("%w: a block of peer %d at the end of time step %d", rendezvous.ErrMalformed, m.Rank, m.Step)
	}
	for a := range 3 {
		if m.Box.Lo[a] < 0 || m.Box.Lo[a] >= m.Box.Hi[a] || m.Box.Hi[a] > p.N[a] {
			return fmt.Errorf("%w: a block of %v", rendezvous.ErrMalformed, m.Box)
		}
	}
	return nil
}

func (k *keeping) leaderReached(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeper != nil {
		k.keeper.LeaderReached(is)
	}
}

// propose returns the term that the keepers have decided, zero if they have not agreed.
func (k *keeping) propose(ctx context.Context, e member.Propose) *register.Term {
	ctx, cancel := context.WithTimeout(ctx, e.Within)
	defer cancel()
	t, err := k.keeper.Propose(ctx, e.Base, e.Want)
	if err != nil {
		k.log.Debug().Err(err).Msg("the keepers have not agreed")
		return &register.Term{}
	}
	return &t
}

// lead leads the run in this process, in a goroutine that may go on after the end of this peer.
func (k *keeping) lead(p *peer, t register.Term) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = make(chan struct{})
	s := launch.Succession{
		Record: *k.record, Received: k.received, Term: t, Keeper: k.keeper, Server: k.server, Hold: p.Hold,
		Leave: p.Leave, Ends: slices.Clone(k.ends),
	}
	plan := launch.Plan{
		Catalog: p.Catalog, ProblemSpec: p.spec, Problem: p.problem, Identity: k.identity, Interrupt: p.Interrupt, Log: p.Log,
		Led: p.Led, Continue: p.Options.Continue,
	}
	go func() {
		defer close(k.done)
		_, k.err = launch.Lead(p.process, plan, s)
	}()
}

// end waits until this process no longer leads the run, and stops keeping.
func (k *keeping) end() error {
	k.mu.Lock()
	server, done := k.server, k.done
	k.mu.Unlock()
	if server == nil {
		return nil
	}
	defer server.Close()
	if done == nil {
		return nil
	}
	<-done
	return k.err
}
