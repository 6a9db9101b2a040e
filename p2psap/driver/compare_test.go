package driver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/stream"
)

// sends is the clock of a comparison in a test: it goes on by what a call of Send over a rail takes, and by nothing else.
type sends struct{ at atomic.Int64 }

func (c *sends) now() time.Time { return time.Unix(0, c.at.Load()) }

// rail returns a rail of which every call of Send takes a time.
func (c *sends) rail(r Rail, takes time.Duration) Rail {
	timed := timedLink{r.Link, c, takes}
	if l, is := r.Link.(*stream.Link); is {
		r.Link = timedStream{l, timed}
	} else {
		r.Link = timed
	}
	return r
}

type timedLink struct {
	microproto.Link
	clock *sends
	takes time.Duration
}

func (l timedLink) Send(batch []microproto.Frame) (int, error) {
	l.clock.at.Add(int64(l.takes))
	return l.Link.Send(batch)
}

// timedStream has the other methods of its link.
type timedStream struct {
	*stream.Link
	timed timedLink
}

func (l timedStream) Send(batch []microproto.Frame) (int, error) { return l.timed.Send(batch) }

// besideTCP gives a node the kernel's TCP as a rail that is to be compared with UDP.
func besideTCP(t *testing.T) func(*Config) {
	return func(c *Config) {
		overEthernet(c)
		l, err := stream.Open(stream.Config{Name: c.Name, Listen: "127.0.0.1"})
		require.NoError(t, err)
		c.Rails = append(c.Rails, Rail{Network: p2psap.Stream, Link: l, Compare: true})
	}
}

// patient gives a node's comparisons the time that a busy machine needs.
func patient(n *Node) *Node {
	n.compareTime = time.Minute
	return n
}

// compared starts two nodes that compare UDP with the kernel's TCP, whose calls of Send take these times, and opens a session.
func compared(t *testing.T, clock *sends, udp, tcp time.Duration) (*Node, [2]p2psap.SessionInfo) {
	t.Helper()
	with := func(c *Config) {
		besideTCP(t)(c)
		c.Rails[0], c.Rails[1] = clock.rail(c.Rails[0], udp), clock.rail(c.Rails[1], tcp)
	}
	a, b := patient(start(t, "a", with)), patient(start(t, "b", with))
	a.compareNow, b.compareNow = clock.now, clock.now
	join(t, a, b)
	require.Empty(t, a.Sessions(), "those of the comparison are the node's own")
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	return a, [2]p2psap.SessionInfo{sa.Info(), sb.Info()}
}

// Sessions use the faster of two rails from their begin on, and say what was measured.
func TestCompareRails(t *testing.T) {
	const fast, slow = time.Microsecond, time.Millisecond
	for fastest, takes := range map[p2psap.Network][2]time.Duration{
		p2psap.Ethernet: {fast, slow}, p2psap.Stream: {slow, fast},
	} {
		t.Run(fastest.String(), func(t *testing.T) {
			a, both := compared(t, &sends{}, takes[0], takes[1])
			for _, i := range both {
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
	var clock sends
	_, both := compared(t, &clock, 700*time.Millisecond, time.Microsecond) // more than a hundredth of a minute
	require.Equal(t, p2psap.Ethernet, both[0].Conditions.Network)
	require.Contains(t, both[0].NetworkReason, "the path is too slow to show a difference")
	require.Less(t, time.Duration(clock.at.Load()), 40*time.Second, "it does not use the time that it has")
}

// If the other end takes no part, the base rail remains in use after a bounded time, and Connect returns.
func TestCompareAlone(t *testing.T) {
	with := besideTCP(t)
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
	with := besideTCP(t)
	a, b := patient(start(t, "a", with)), patient(start(t, "b", with))
	b.compareNow = func() time.Time { // it leads
		<-b.dialling.Done() // b is closed
		return time.Time{}
	}
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
