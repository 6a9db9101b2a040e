package driver

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// noReceiver is a link whose receiver's goroutine gets nothing, as if it were never scheduled.
type noReceiver struct {
	*ether.Link
	closed chan struct{}
}

func (d *noReceiver) Recv([]microproto.Frame) (int, error) {
	<-d.closed
	return 0, net.ErrClosed
}

func (d *noReceiver) RecvTrains(batch []microproto.Frame) (int, error) { return d.Recv(batch) }

func (d *noReceiver) Close() error {
	close(d.closed)
	return d.Link.Close()
}

func TestPumpReceives(t *testing.T) {
	unhearing := func(c *Config) {
		c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog()
		c.Rails[0].Link = &noReceiver{c.Rails[0].Link.(*ether.Link), make(chan struct{})}
	}
	a, b := start(t, "a", unhearing), start(t, "b", unhearing)
	join(t, a, b)
	for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		sa, sb := open(t, a, b, options(m.String(), m))
		data := []byte("8 bytes.")
		transfer, err := sa.TrySend(2, 1, data)
		require.NoError(t, err)
		slot := p2psap.Slot{Tag: 2, Data: []byte("--------")}
		await.Until(t, func() bool {
			require.NoError(t, b.Pump())
			_, fresh, err := sb.Poll(&slot)
			require.NoError(t, err)
			return fresh
		}, "the message")
		require.Equal(t, data, slot.Data)
		await.Until(t, func() bool {
			require.NoError(t, a.Pump())
			return accepted(a, sa) >= transfer
		}, "the acknowledgement")
	}
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Pump(), p2psap.ErrClosed)
}

func accepted(n *Node, s *Socket) p2psap.Transfer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Accepted(s.id)
}

func TestPumpAllocatesNothing(t *testing.T) {
	a := start(t, "a", nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = a.Pump() }))
}

// counted counts how often a link is asked.
type counted struct {
	*noReceiver
	times int
}

func (c *counted) TryRecv(in []microproto.Frame) (int, error) {
	c.times++
	return c.noReceiver.TryRecv(in)
}

// Pump asks a link that no session uses once a millisecond, and another one in every call.
func TestPumpRarelyAsksUnusedLinks(t *testing.T) {
	var asked *counted
	a := start(t, "a", func(c *Config) {
		c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog()
		asked = &counted{noReceiver: &noReceiver{c.Rails[0].Link.(*ether.Link), make(chan struct{})}}
		c.Rails[0].Link = asked
	})
	pump := func() (times int, within time.Duration) {
		before, begin := asked.times, a.now()
		for range 1000 {
			require.NoError(t, a.Pump())
		}
		return asked.times - before, a.now().Sub(begin)
	}
	times, within := pump()
	require.Positive(t, times)
	require.LessOrEqual(t, times, 2+int(within/unusedEvery))
	b := start(t, "b", func(c *Config) { c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog() })
	join(t, a, b)
	open(t, a, b, options("halo", microproto.ModeSynchronous))
	for a.pumpAllAt = 0; a.rails[0].unused; {
		require.NoError(t, a.Pump()) // looks again
	}
	times, _ = pump()
	require.GreaterOrEqual(t, times, 1000)
}

// noRailReceiver waits for ever.
type noRailReceiver struct {
	*ib.Link
	closed chan struct{}
}

func (d *noRailReceiver) Await() error {
	<-d.closed
	return net.ErrClosed
}

func (d *noRailReceiver) Close() error {
	close(d.closed)
	return d.Link.Close()
}

// Pump receives from rails, too: everything sent arrives in order although the rail's goroutine is never
// scheduled.
func TestPumpReceivesFromRails(t *testing.T) {
	fabric := ib.NewSoftwareFabric()
	railed := func(name string) func(c *Config) {
		return func(c *Config) {
			require.NoError(t, fabric.Add(name))
			l, err := ib.Open(ib.Config{Name: name, Device: name, Fabric: fabric})
			require.NoError(t, err)
			c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog()
			c.Rails = append(c.Rails, Rail{Network: p2psap.InfiniBand, Link: &noRailReceiver{l, make(chan struct{})}})
		}
	}
	a, b := start(t, "a", railed("a")), start(t, "b", railed("b"))
	join(t, a, b)
	for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		sa, sb := open(t, a, b, options(m.String(), m))
		require.Equal(t, p2psap.InfiniBand, sa.Info().Conditions.Network)
		slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
		for label := p2psap.Label(1); label <= 20; label++ {
			transfer, err := sa.TrySend(2, label, binary.BigEndian.AppendUint64(nil, uint64(label)))
			require.NoError(t, err)
			await.Until(t, func() bool {
				require.NoError(t, a.Pump())
				require.NoError(t, b.Pump())
				arrival, fresh, err := sb.Poll(&slot)
				require.NoError(t, err)
				if fresh {
					require.EqualValues(t, label, arrival.Label)
					require.Equal(t, uint64(label), binary.BigEndian.Uint64(slot.Data))
				}
				return fresh
			}, "message %d", label)
			if m == microproto.ModeSynchronous {
				await.Until(t, func() bool {
					require.NoError(t, a.Pump())
					require.NoError(t, b.Pump())
					return accepted(a, sa) >= transfer
				}, "that message %d is stored", label)
			}
		}
	}
	require.Zero(t, a.Stats().LinkErrors)
	b.mu.Lock()
	require.Same(t, b.rails[1], b.poll.recent, "calls that wait receive from this rail next")
	b.mu.Unlock()
	require.NoError(t, a.Close())
	a.Pump() // does no harm
}
