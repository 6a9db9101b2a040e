package driver

import (
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// A node that names no peer accepts the sessions that others open, each once, and may refuse them.
func TestAccept(t *testing.T) {
	t.Parallel() // it mostly waits
	server := start(t, "server", nil)
	clients := []*Node{start(t, "c0", nil), start(t, "c1", nil)}
	sockets := make([]*Socket, len(clients))
	var dialling sync.WaitGroup
	for i, c := range clients {
		require.NoError(t, c.Connect(limit(t), "server", server.ControlAddr().String()))
		dialling.Go(func() {
			var err error
			if sockets[i], err = c.Open(limit(t), "server", options("work", microproto.ModeSynchronous)); err != nil {
				t.Error(err)
			}
		})
	}
	accepted := map[string]*Socket{}
	for range clients {
		peer, o, err := server.Accept(limit(t))
		require.NoError(t, err)
		require.Equal(t, options("work", microproto.ModeSynchronous), o)
		accepted[peer], err = server.Open(limit(t), peer, o)
		require.NoError(t, err)
	}
	dialling.Wait()
	require.Len(t, accepted, len(clients))
	for i, s := range sockets {
		_, err := s.Send(limit(t), 2, 1, []byte{byte(i), 0, 0, 0, 0, 0, 0, 0})
		require.NoError(t, err)
		slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
		_, err = accepted[fmt.Sprint("c", i)].Receive(limit(t), &slot)
		require.NoError(t, err)
		require.EqualValues(t, i, slot.Data[0])
	}

	refused := make(chan error)
	go func() {
		_, err := clients[1].Open(limit(t), "server", options("other", microproto.ModeAsynchronous))
		refused <- err
	}()
	peer, o, err := server.Accept(limit(t))
	require.NoError(t, err)
	require.Equal(t, "c1", peer)
	require.Equal(t, microproto.ModeAsynchronous, o.Mode)
	require.NoError(t, server.Refuse(peer, o.Name, "no room"))
	err = <-refused
	var why *p2psap.RefusedError
	require.ErrorAs(t, err, &why)
	require.ErrorContains(t, err, "no room")
	require.Error(t, server.Refuse(peer, o.Name, "no room"), "it waits no more")
	require.ErrorIs(t, server.Refuse("nobody", o.Name, ""), p2psap.ErrNotConnected)

	over, end := context.WithCancel(t.Context())
	end()
	_, _, err = server.Accept(over)
	require.ErrorIs(t, err, context.Canceled)
	waiting := make(chan error)
	go func() {
		_, _, err := server.Accept(context.Background())
		waiting <- err
	}()
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-waiting, p2psap.ErrClosed)
}

// Listeners serve streams of their names from any peer. A session that is no stream is left out.
func TestListen(t *testing.T) {
	t.Parallel() // it mostly waits
	real := func(c *Config) { c.Catalog = ctp.Catalog() }
	server := start(t, "server", real)
	l, quiet := server.Listen("echo"), server.Listen("quiet")
	require.Equal(t, "echo", l.Addr().String()[len(l.Addr().String())-4:])
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				require.ErrorIs(t, err, net.ErrClosed)
				return
			}
			serving.Go(func() {
				var n int
				for gob.NewDecoder(c).Decode(&n) == nil && gob.NewEncoder(c).Encode(n+1) == nil {
					continue
				}
				_ = c.Close()
			})
		}
	})
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			c := start(t, fmt.Sprint("c", i), real)
			if err := c.Connect(limit(t), "server", server.ControlAddr().String()); err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Open(limit(t), "server", options("echo/wrong", microproto.ModeSynchronous)); err == nil {
				t.Error("a session that is no stream was accepted")
			}
			for _, name := range []string{"echo", "echo/1", "echo/2"} {
				s, err := c.OpenConn(limit(t), "server", name)
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				if err := gob.NewEncoder(s).Encode(i); err != nil {
					t.Error(err)
				}
				if err := gob.NewDecoder(s).Decode(&n); err != nil || n != i+1 {
					t.Errorf("%d after %d: %v", n, i, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	require.NoError(t, l.Close())
	require.NoError(t, quiet.Close())
	serving.Wait()
	_, err := quiet.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// Shutdown waits until all transfers are accepted. If its context ends first, it returns the context's error.
func TestShutdown(t *testing.T) {
	long := func(c *Config) { c.Linger, c.PeerTimeout = time.Hour, time.Hour }
	a, b := start(t, "a", long), start(t, "b", long)
	join(t, a, b)
	sa, sb := open(t, a, b, options("halo", microproto.ModeSynchronous))
	_, err := sa.Send(t.Context(), 2, 1, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, sa.Shutdown(limit(t)))
	require.NoError(t, sa.Shutdown(limit(t)), "again")
	slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
	_, err = sb.Receive(limit(t), &slot)
	require.NoError(t, err)
	_, err = sb.Receive(limit(t), &slot)
	require.ErrorIs(t, err, p2psap.ErrPeerClosed)
	require.NoError(t, sb.Shutdown(limit(t)))

	sa, _ = open(t, a, b, options("halo", microproto.ModeSynchronous))
	b.mu.Lock() // it stands still, and accepts nothing
	_, err = sa.Send(t.Context(), 2, 1, make([]byte, 8))
	if err == nil {
		over, end := context.WithCancel(t.Context())
		end()
		err = sa.Shutdown(over)
	}
	b.mu.Unlock()
	require.ErrorIs(t, err, context.Canceled)
	_, err = sa.Send(t.Context(), 2, 1, make([]byte, 8))
	require.ErrorIs(t, err, p2psap.ErrClosed)
	require.NoError(t, a.Abort())
	require.NoError(t, b.Abort())
}

// Disconnect ends the sessions with one peer at both ends, and leaves those with others alone. Either end may connect
// again.
func TestDisconnect(t *testing.T) {
	t.Parallel() // it mostly waits
	a, b, c := start(t, "a", nil), start(t, "b", nil), start(t, "c", nil)
	join(t, a, b)
	join(t, a, c)
	other, _ := open(t, a, c, options("halo", microproto.ModeSynchronous))
	require.ErrorIs(t, a.Disconnect("nobody"), p2psap.ErrNotConnected)
	for round, by := range []*Node{a, b, a} {
		sa, sb := open(t, a, b, options("halo", microproto.ModeSynchronous))
		_, err := sa.Send(limit(t), 2, 1, make([]byte, 8))
		require.NoError(t, err)
		_, err = sb.Receive(limit(t), &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
		require.NoError(t, err)
		mine, theirs, peer := sa, sb, "b"
		if by == b {
			mine, theirs, peer = sb, sa, "a"
		}
		require.NoError(t, by.Disconnect(peer))
		_, err = mine.Send(limit(t), 2, 1, make([]byte, 8))
		require.ErrorIs(t, err, p2psap.ErrClosed)
		_, err = theirs.Receive(limit(t), &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
		require.ErrorIs(t, err, p2psap.ErrPeerClosed, "round %d", round)
		_, err = by.Open(limit(t), peer, options("halo", microproto.ModeSynchronous))
		require.ErrorIs(t, err, p2psap.ErrClosed, "connect first")
		require.NoError(t, mine.Close())
		require.NoError(t, theirs.Close())
		to := b
		if by == b {
			to = a
		}
		require.NoError(t, by.Connect(limit(t), peer, to.ControlAddr().String()))
	}
	_, err := other.Send(limit(t), 2, 1, make([]byte, 8))
	require.NoError(t, err)
}
