package driver

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Abort does not wait for transfers to be accepted, and ends a Close that does.
func TestAbortDoesNotLinger(t *testing.T) {
	t.Parallel() // it mostly waits
	long := func(c *Config) { c.Linger, c.PeerTimeout = time.Hour, time.Hour }
	a, b := start(t, "a", long), start(t, "b", long)
	join(t, a, b)
	sa, _ := open(t, a, b, options("halo", microproto.ModeSynchronous))
	a.drainTime = time.Hour
	b.mu.Lock() // it stands still: it accepts nothing and closes no connection
	_, err := sa.Send(t.Context(), 2, 1, make([]byte, 8))
	require.NoError(t, err)
	var closing sync.WaitGroup
	closing.Go(func() { _ = sa.Close() })
	closing.Go(func() { _ = a.Close() })
	await.Until(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.closing
	}, "the node to close")
	err = a.Abort()
	closing.Wait()
	b.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, b.Abort())
	_, err = sa.Send(t.Context(), 2, 1, make([]byte, 8))
	require.ErrorIs(t, err, p2psap.ErrClosed)
}

// A peer whose process on this host is killed is lost at once, long before the peer time-out. Its kernel closes what it
// had open.
func TestKilledPeerIsLostAtOnce(t *testing.T) {
	t.Parallel()
	long := func(c *Config) { c.PeerTimeout = time.Hour }
	a, b := start(t, "a", long), start(t, "b", long)
	join(t, a, b)
	b.mu.Lock() // it does nothing any more
	require.NoError(t, b.listener.Close())
	for _, c := range b.conns {
		require.NoError(t, c.tcp.Close())
	}
	err := a.WaitAny(t.Context(), NoTimeout)
	b.mu.Unlock()
	lost, is := errors.AsType[*p2psap.PeerLostError](err)
	require.True(t, is, err)
	require.Contains(t, lost.Reason, "its process on this host has ended")
	require.NoError(t, b.Abort())
}
