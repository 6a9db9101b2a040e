package driver

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Data that is sent again in vain is the reason of a connection that gets stuck. Nothing else is.
func TestStuckSaysWhy(t *testing.T) {
	for _, c := range []struct {
		unacked     uint32
		retransmits uint8
		want        bool
	}{{0, 0, false}, {2, 0, false}, {2, 2, false}, {0, 5, false}, {1, 3, true}, {4, 9, true}} {
		why := stuck(&unix.TCPInfo{Unacked: c.unacked, Retransmits: c.retransmits, Snd_mss: 1148})
		require.Equal(t, c.want, why != "", "%+v", c)
		if c.want {
			require.Contains(t, why, "drops packets as long as these, of up to 1208 bytes (it has to carry 1,280)")
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	require.Empty(t, unacknowledged(a))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.Empty(t, unacknowledged(c))
}
