package peer

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// A peer retries a rendezvous that closes its connection before the handshake, but not one that refuses it, and none
// after its time has passed.
func TestEnterTriesAgain(t *testing.T) {
	id, err := rendezvous.NewKeyIdentity("v1", "f", driver.Key{1})
	require.NoError(t, err)
	other, err := rendezvous.NewKeyIdentity("v1", "f", driver.Key{2})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		closes   int // connections closed before a handshake
		launcher rendezvous.Identity
		limit    time.Duration
		want     string
	}{
		"the third":    {2, id, time.Minute, ""},
		"another run":  {1, other, time.Minute, "does not know the run's secret"},
		"no more time": {1, id, 0, "no answer from the rendezvous at 127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			go func() {
				for i := 0; ; i++ {
					tcp, err := l.Accept()
					if err != nil {
						return
					}
					if i < c.closes {
						_ = tcp.Close()
						continue
					}
					conn := rendezvous.NewConn(tcp, time.Minute)
					if _, err := conn.Admit(c.launcher); err == nil {
						_ = conn.Send(rendezvous.Welcome{Rank: 3})
					}
				}
			}()
			o := &Options{Rendezvous: l.Addr().String(), Identity: id, DialTime: c.limit, WaitTime: time.Minute, Log: zerolog.Nop(),
				waiting: newWaiting(nil)}
			conn, w, err := join(context.Background(), o)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 3, w.Rank)
			require.NoError(t, conn.Close())
		})
	}
}

// A peer that joins again does not wait for a launcher that is gone: its host refuses the connection.
func TestJoiningAGoneLauncherAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close()) // nothing listens there any more
	id, err := rendezvous.NewKeyIdentity("v1", "f", driver.Key{1})
	require.NoError(t, err)
	o := &Options{Rendezvous: l.Addr().String(), Identity: id, DialTime: 2 * await.Limit, Log: zerolog.Nop(), rejoins: true,
		waiting: newWaiting(nil)}
	_, _, err = join(await.Context(t), o)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
