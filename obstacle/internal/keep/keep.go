// Package keep holds a process's copy of the register that decides who leads a run (package register), and changes
// the register over connections to the other keepers.
package keep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Keeper is a copy of the register. Its methods are safe for concurrent use.
type Keeper struct {
	address  string
	identity rendezvous.Identity
	join     rendezvous.Join
	connect  func(ctx context.Context, most time.Duration, address string) (net.Conn, error)

	mu       sync.Mutex
	register *register.Keeper
	round    int // highest of a proposal
}

// New returns the keeper of the process that others reach at an address. t is the newest term that it knows. Join
// names the process.
func New(address string, id rendezvous.Identity, j rendezvous.Join, t register.Term) *Keeper {
	j.Purpose = rendezvous.ToVote
	return &Keeper{
		address: address, identity: id, join: j, connect: rendezvous.Dial, register: register.NewKeeper(address, t),
	}
}

// Address returns the address of the process.
func (k *Keeper) Address() string { return k.address }

// Newest returns the newest term that is known to be decided.
func (k *Keeper) Newest() register.Term {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.register.Newest()
}

// Adopt accepts a decided term.
func (k *Keeper) Adopt(t register.Term) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.register.Adopt(t)
}

// LeaderReached states whether this process has a connection to the leader. If so, it votes for nobody else.
func (k *Keeper) LeaderReached(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.register.LeaderReached(is)
}

func (k *Keeper) step(m register.Message) (register.Message, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.register.Step(m)
}

// begin begins a proposal. No two proposals have the same round.
func (k *Keeper) begin(base, want register.Term) (*register.Proposal, []register.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, out := register.NewProposal(k.address, base, want, k.round+1)
	k.round = p.Round()
	return p, out
}

// retry begins a proposal again.
func (k *Keeper) retry(p *register.Proposal) []register.Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := p.Retry()
	k.round = max(k.round, p.Round())
	return out
}

// idleTime bounds the wait for the next message of a proposer.
const idleTime = time.Minute

// Serve answers the messages of another keeper until the connection ends, and closes it. A nil Keeper refuses.
func (k *Keeper) Serve(conn *rendezvous.Conn) {
	defer conn.Close()
	if k == nil {
		_ = conn.Send(rendezvous.Refuse{Reason: "this process keeps no register"})
		return
	}
	for {
		m, err := conn.ReceiveWithin(idleTime, rendezvous.KindVote)
		if err != nil {
			return
		}
		if reply, ok := k.step(m.(rendezvous.Vote).Message); ok && conn.Send(rendezvous.Vote{Message: reply}) != nil {
			return
		}
	}
}

// Times of a proposal.
const (
	retryTime  = 100 * time.Millisecond // least time between two attempts; the most is three times as long
	answerTime = 2 * time.Second        // of another keeper
	redialTime = 50 * time.Millisecond
)

// Propose tries to decide what follows the term base, until ctx ends. It returns what was decided, which may be what
// another process has proposed. One call at a time.
func (k *Keeper) Propose(ctx context.Context, base, want register.Term) (register.Term, error) {
	toSend, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the caller may end ctx once it has the result
	p, out := k.begin(base, want)
	replies := make(chan register.Message, 64)
	others := map[string]chan register.Message{}
	var sending sync.WaitGroup
	for _, address := range slices.Concat(base.Keepers, want.Keepers) {
		if address == k.address || others[address] != nil {
			continue
		}
		to := make(chan register.Message, 8)
		others[address] = to
		sending.Go(func() { k.converse(toSend, address, to, replies) })
	}
	defer func() {
		for _, to := range others {
			close(to) // what is in it, as Decided, is still sent
		}
		go func() {
			defer cancel()
			done := make(chan struct{})
			go func() { sending.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(answerTime):
			}
		}()
	}()
	retry := time.NewTimer(0)
	<-retry.C
	for {
		retry.Reset(retryTime + rand.N(2*retryTime))
		k.deliver(p, out, others)
		if t, ok := p.Result(); ok {
			k.Adopt(t)
			return t, nil
		}
		select {
		case m := <-replies:
			out = p.Step(m)
		case <-retry.C:
			out = k.retry(p)
		case <-ctx.Done():
			cancel()
			return register.Term{}, fmt.Errorf("no majority of the %d keepers of term %d has agreed: %w",
				len(base.Keepers), base.Number, ctx.Err())
		}
	}
}

// deliver sends the messages of a proposal. Those to this process are answered at once.
func (k *Keeper) deliver(p *register.Proposal, out []register.Message, others map[string]chan register.Message) {
	for len(out) > 0 {
		m := out[0]
		out = out[1:]
		if m.To == k.address {
			if reply, ok := k.step(m); ok {
				out = append(out, p.Step(reply)...)
			}
			continue
		}
		select {
		case others[m.To] <- m:
		default: // it does not answer; a later attempt repeats it
		}
	}
}

// converse sends messages to another keeper and passes on its replies.
func (k *Keeper) converse(ctx context.Context, address string, messages <-chan register.Message, replies chan<- register.Message) {
	var conn *rendezvous.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for m := range messages {
		if ctx.Err() != nil {
			return
		}
		if conn == nil {
			if conn = k.dial(ctx, address); conn == nil {
				select {
				case <-time.After(redialTime):
				case <-ctx.Done():
				}
				continue
			}
		}
		reply, err := exchange(conn, m)
		if err != nil {
			conn.Close()
			conn = nil
			continue
		}
		if reply == nil {
			continue
		}
		select {
		case replies <- *reply:
		case <-ctx.Done():
			return
		}
	}
}

// exchange sends a message and returns the answer, which Decided does not have.
func exchange(conn *rendezvous.Conn, m register.Message) (*register.Message, error) {
	if err := conn.Send(rendezvous.Vote{Message: m}); err != nil || m.Kind == register.Decided {
		return nil, err
	}
	reply, err := conn.ReceiveWithin(answerTime, rendezvous.KindVote)
	if err != nil {
		return nil, err
	}
	v := reply.(rendezvous.Vote).Message
	return &v, nil
}

func (k *Keeper) dial(ctx context.Context, address string) *rendezvous.Conn {
	c, err := k.connect(ctx, answerTime, address)
	if err != nil {
		return nil
	}
	conn := rendezvous.NewConn(c, answerTime)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Introduce(k.identity, k.join); err != nil {
		conn.Close()
		return nil
	}
	return conn
}
