package rendezvous

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lastingPair returns the two ends of a connection that may go on over another one, and the address of its server.
func lastingPair(t *testing.T, id Identity) (launcher, peer *Conn, at string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at = l.Addr().String()
	joined := make(chan *Conn, 1)
	s := Serve(l, id, 1, 0, func(string) {}, func(c *Conn, _ Join) {
		c.last([]byte("the connection"), false)
		joined <- c
	})
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	peer = NewConn(c, 0)
	admitted := make(chan error, 1)
	go func() {
		launcher = <-joined
		s.mu.Lock()
		s.lasting["the connection"] = launcher
		s.mu.Unlock()
		admitted <- launcher.Send(Welcome{Rank: 1, Reconnect: []byte("the connection"), Addresses: []string{at}})
	}()
	_, err = peer.Join(id, Join{Rank: 1}, time.Minute)
	require.NoError(t, err)
	require.NoError(t, <-admitted)
	for _, c := range []*Conn{launcher, peer} { // a busy machine is no failure of a cable
		c.mu.Lock()
		c.kept.goOn, c.kept.redial = time.Minute, time.Minute
		c.mu.Unlock()
	}
	t.Cleanup(func() {
		_ = launcher.Close()
		_ = peer.Close()
	})
	return launcher, peer, at
}

// A connection goes on over another one 20 times while both ends send. Every message arrives once, in order.
func TestGoesOn(t *testing.T) {
	id := here(t, "v1", "same", "secret")
	launcher, peer, at := lastingPair(t, id)
	const messages = 20_000
	var all sync.WaitGroup
	half := make(chan struct{})
	for _, end := range []struct{ from, to *Conn }{{launcher, peer}, {peer, launcher}} {
		all.Go(func() {
			for k := range messages {
				if err := end.from.Send(Host{Rank: k}); err != nil {
					t.Errorf("message %d: %v", k, err)
					return
				}
				if k%1000 == 0 && end.from == peer {
					half <- struct{}{}
				}
			}
		})
		all.Go(func() {
			for k := range messages {
				m, err := end.to.Receive(KindHost)
				if err != nil || m != (Message)(Host{Rank: k}) {
					t.Errorf("message %d: %v, %v", k, m, err)
					return
				}
			}
		})
	}
	for range 20 {
		<-half
		require.NoError(t, peer.reconnect(id, Join{Rank: 1}, []string{at}))
	}
	all.Wait()
}

// The server refuses to continue a connection for a process that does not know its identity. It closes a connection whose
// missing messages are no longer kept: none is lost in silence.
func TestDoesNotGoOn(t *testing.T) {
	id := here(t, "v1", "same", "secret")
	launcher, peer, at := lastingPair(t, id)
	refused := func(r *Reconnect) {
		t.Helper()
		c, err := net.Dial("tcp", at)
		require.NoError(t, err)
		by := NewConn(c, 0)
		defer by.Close()
		require.NoError(t, by.Introduce(id, Join{Purpose: ToReconnect, Reconnect: r}))
		m, err := by.Receive()
		require.True(t, err != nil || m.(Refuse).Reason != "", "%v", m)
	}
	refused(nil)
	refused(&Reconnect{ID: []byte("another")})
	require.NoError(t, peer.Send(Ready{Epoch: 1}))
	m, err := launcher.Receive()
	require.NoError(t, err)
	require.Equal(t, Ready{Epoch: 1}, m, "it has gone on")

	refused(&Reconnect{ID: []byte("the connection"), Received: 1 << 40}) // more than was sent
	_, err = launcher.Receive()
	require.Error(t, err)
	_, err = peer.Receive()
	require.Error(t, err)
}

// A host that refuses connections, at any address that is surely its own, has lost its process, though the present cable carries
// nothing.
func TestRefusalAtAnotherAddressIsTheEnd(t *testing.T) {
	near := func(a string) bool { return a == "10.0.2.1:7000" }
	for _, c := range []struct {
		refused []string
		want    bool
	}{
		{nil, false}, {[]string{"10.0.1.1:7000"}, true}, {[]string{"10.0.2.1:7000"}, true}, {[]string{"192.168.0.1:7000"}, false},
		{[]string{"192.168.0.1:7000", "10.0.2.1:7000"}, true},
	} {
		require.Equal(t, c.want, ended(c.refused, "10.0.1.1:7000", near), "%v", c.refused)
	}
	id := here(t, "v1", "same", "secret")
	_, peer, _ := lastingPair(t, id)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	far := gone.Addr().String() // of no network of this host
	require.NoError(t, peer.reconnect(id, Join{Rank: 1}, []string{far}), "it listens at the present address")
}

func TestSeveralWays(t *testing.T) {
	for _, c := range []struct {
		listens, peer string
		want          bool
	}{
		{"0.0.0.0:7000", "10.0.0.2:40000", true}, {"[::]:7000", "[fd00::2]:40000", true},
		{"[::]:7000", "[fe80::2%eth0]:40000", true}, {"10.0.0.1:7000", "10.0.0.2:40000", false},
		{"0.0.0.0:7000", "127.0.0.1:40000", false}, {"[::]:7000", "[::ffff:127.0.0.1]:40000", false},
		{"[::]:7000", "[::1]:40000", false}, {"pipe", "pipe", false},
	} {
		require.Equal(t, c.want, severalWays(c.listens, c.peer), "%s from %s", c.listens, c.peer)
	}
}

func TestAcknowledge(t *testing.T) {
	k := kept{sent: 5, frames: [][]byte{{1}, {2}, {3}}, bytes: 3}
	require.False(t, k.acknowledge(1), "the second was not kept")
	require.False(t, k.acknowledge(6))
	require.True(t, k.acknowledge(2))
	require.True(t, k.acknowledge(4))
	require.Equal(t, [][]byte{{3}}, k.frames)
	require.Equal(t, 1, k.bytes)
	require.False(t, k.acknowledge(3))
	require.True(t, k.acknowledge(5))
	require.Empty(t, k.frames)
}
