package keep

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// identity is that of a run.
var identity = func() rendezvous.Identity {
	id, err := rendezvous.NewKeyIdentity("v1", "same", sha256.Sum256([]byte("secret")))
	if err != nil {
		panic(err)
	}
	return id
}()

// first is a term of three keepers.
var first = register.Term{Number: 1, Leader: "a", Keepers: []string{"a", "b", "c"}}

// after returns a proposal of a leader to replace a term.
func after(base register.Term, leader string) register.Term {
	return register.Term{Number: base.Number + 1, Epoch: base.Epoch + 1, Leader: leader, Keepers: base.Keepers}
}

// network connects keepers over pipes, which need no real time.
type network struct {
	keepers map[string]*Keeper
	answer  map[string]func(net.Conn) // how an address answers, instead of its keeper
	heals   time.Time                 // answer is not used any more; zero: it always is
	serving sync.WaitGroup

	mu    sync.Mutex
	ended time.Time // the last connection
}

// newNetwork returns the keepers of the term first.
func newNetwork() *network {
	n := &network{keepers: map[string]*Keeper{}, answer: map[string]func(net.Conn){}}
	for _, address := range first.Keepers {
		k := New(address, identity, rendezvous.Join{Rank: -1, Host: address}, first)
		k.connect = n.connect
		n.keepers[address] = k
	}
	return n
}

// connect connects to an address. A nil function in answer means that nobody listens there.
func (n *network) connect(_ context.Context, _ time.Duration, address string) (net.Conn, error) {
	answer, other := n.answer[address]
	other = other && (n.heals.IsZero() || time.Now().Before(n.heals))
	if other && answer == nil {
		return nil, syscall.ECONNREFUSED
	}
	here, pipe := net.Pipe()
	there := end{pipe}
	n.serving.Go(func() {
		conn := rendezvous.NewConn(there, answerTime)
		if other {
			answer(there)
		} else if _, err := conn.Admit(identity); err == nil {
			n.keepers[address].Serve(conn)
		}
		conn.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ended = time.Now()
	})
	return here, nil
}

// end is the end of a pipe that, like a TCP connection, can be read after the other end was closed.
type end struct{ net.Conn }

func (e end) SetReadDeadline(t time.Time) error {
	if err := e.Conn.SetReadDeadline(t); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// settle waits, in virtual time, until the proposals leave nothing behind. It returns when the last connection ended.
func (n *network) settle() time.Time {
	time.Sleep(2 * answerTime)
	synctest.Wait()
	n.serving.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

// silent is a process that answers nothing, not even the handshake.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// voter returns a process that is a keeper but for its answers. It gives none if reply returns nil.
func voter(reply func(register.Message) rendezvous.Message) func(net.Conn) {
	return func(c net.Conn) {
		conn := rendezvous.NewConn(c, answerTime)
		if _, err := conn.Admit(identity); err != nil {
			return
		}
		for {
			m, err := conn.Receive(rendezvous.KindVote)
			if err != nil {
				return
			}
			if r := reply(m.(rendezvous.Vote).Message); r != nil && conn.Send(r) != nil {
				return
			}
		}
	}
}

// listen starts a keeper per address over loopback. It returns the first term that they keep.
func listen(t *testing.T, count int) ([]*Keeper, register.Term) {
	t.Helper()
	var listeners []net.Listener
	base := register.Term{Number: 1}
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
		base.Keepers = append(base.Keepers, l.Addr().String())
	}
	base.Leader = base.Keepers[0]
	keepers := make([]*Keeper, count)
	for i, l := range listeners {
		k := New(base.Keepers[i], identity, rendezvous.Join{Rank: -1, Host: "h"}, base)
		keepers[i] = k
		s := rendezvous.Serve(l, identity, count, answerTime, func(string) {}, func(c *rendezvous.Conn, j rendezvous.Join) {
			if j.Purpose != rendezvous.ToVote || j.Host != "h" {
				c.Close()
				return
			}
			k.Serve(c)
		})
		t.Cleanup(s.Close)
	}
	return keepers, base
}
