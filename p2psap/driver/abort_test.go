package driver

import (
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
