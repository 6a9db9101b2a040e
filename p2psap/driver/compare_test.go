package driver

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/stream"
)

// slow makes a function of Send that keeps the processor for a while.
func slow(send func([]microproto.Frame) (int, error)) func([]microproto.Frame) (int, error) {
	return func(batch []microproto.Frame) (int, error) {
		_ = sha256.Sum256(make([]byte, 1<<20)) // more than a trip takes
		return send(batch)
	}
}

type slowLink struct{ microproto.Link }

func (l slowLink) Send(batch []microproto.Frame) (int, error) { return slow(l.Link.Send)(batch) }

type slowStream struct{ *stream.Link }

func (l slowStream) Send(batch []microproto.Frame) (int, error) { return slow(l.Link.Send)(batch) }

// besideTCP gives a node the kernel's TCP as a rail that is to be compared with UDP; one of them may be slow.
func besideTCP(t *testing.T, slowest p2psap.Network) func(*Config) {
	return func(c *Config) {
		overEthernet(c)
		l, err := stream.Open(stream.Config{Name: c.Name, Listen: "127.0.0.1"})
		require.NoError(t, err)
		rail := Rail{Network: p2psap.Stream, Link: l, Compare: true}
		switch slowest {
		case p2psap.Stream:
			rail.Link = slowStream{l}
		case p2psap.Ethernet:
			c.Rails[0].Link = slowLink{c.Rails[0].Link}
		}
		c.Rails = append(c.Rails, rail)
	}
}

// patient gives a node's comparisons the time that a busy machine needs.
func patient(n *Node) *Node {
	n.compareTime = time.Minute
	return n
}

// Sessions use the faster of two rails from their begin on, and say what was measured.
func TestCompareRails(t *testing.T) {
	for slowest, fastest := range map[p2psap.Network]p2psap.Network{
		p2psap.Stream: p2psap.Ethernet, p2psap.Ethernet: p2psap.Stream,
	} {
		t.Run("slow "+slowest.String(), func(t *testing.T) {
			with := besideTCP(t, slowest)
			a, b := patient(start(t, "a", with)), patient(start(t, "b", with))
			join(t, a, b)
			require.Empty(t, a.Sessions(), "those of the comparison are the node's own")
			sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
			for _, s := range []*Socket{sa, sb} {
				i := s.Info()
				require.Equal(t, fastest, i.Conditions.Network, i.NetworkReason)
				require.Contains(t, i.NetworkReason, "128 KiB one way in")
			}
			_, err := a.Open(limit(t), "b", options(p2psap.ReservedName+"s", microproto.ModeSynchronous))
			require.ErrorContains(t, err, "the node's own sessions")
		})
	}
}

// On a slow path the comparison ends with the first turn: it would take long and show nothing.
func TestCompareOnASlowPath(t *testing.T) {
	with := besideTCP(t, p2psap.Ethernet)
	a, b := start(t, "a", with), start(t, "b", with)
	for _, n := range []*Node{a, b} {
		n.compareTime = 20 * time.Millisecond // a trip takes more than a hundredth
	}
	join(t, a, b)
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	require.Equal(t, p2psap.Ethernet, sa.Info().Conditions.Network)
	// On a busy machine not even the first turn passes in time.
	require.Regexp(t, "the path is too slow to show a difference|messages did not pass in time", sa.Info().NetworkReason)
}

// If the other end takes no part, the base rail remains in use after a bounded time, and Connect returns.
func TestCompareAlone(t *testing.T) {
	with := besideTCP(t, 0)
	a, b := start(t, "a", with), start(t, "b", with)
	b.mu.Lock()
	b.comparing["a"] = true // it never begins
	b.mu.Unlock()
	require.NoError(t, a.Connect(limit(t), "b", b.ControlAddr().String()))
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	require.Equal(t, p2psap.Ethernet, sa.Info().Conditions.Network)
	require.Contains(t, sa.Info().NetworkReason, "messages did not pass in time, which a firewall may cause")
}

// Nodes that are closed during a comparison leave no goroutine behind.
func TestCloseDuringComparison(t *testing.T) {
	with := besideTCP(t, p2psap.Ethernet)
	a, b := patient(start(t, "a", with)), patient(start(t, "b", with))
	go func() { _ = a.Connect(limit(t), "b", b.ControlAddr().String()) }()
	open := func(n *Node) int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.sockets)
	}
	await.Until(t, func() bool { return open(a) == 2 }, "the sessions of the comparison")
	require.NoError(t, b.Close())
	await.Until(t, func() bool { return open(a) == 0 }, "their end")
}

// Bytes that are no result are refused.
func TestDecodeComparison(t *testing.T) {
	c := p2psap.Comparison{Bytes: compareBytes, Base: 30 * time.Microsecond, Rail: 20 * time.Microsecond, Faster: true}
	got, err := decodeComparison(encodeComparison(&c))
	require.NoError(t, err)
	require.Equal(t, c, got)
	for _, b := range [][]byte{nil, make([]byte, comparisonBytes-1), make([]byte, comparisonBytes+1)} {
		_, err := decodeComparison(b)
		require.Error(t, err)
	}
	b := encodeComparison(&c)
	for i := range b {
		b[i] = 0xff
	}
	got, err = decodeComparison(b)
	require.NoError(t, err)
	require.False(t, got.Faster)
	require.Positive(t, got.Base, "never negative")
}
