package driver

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/stream"
)

// onFabric gives a node a rail: an adapter of its name on the fabric.
func onFabric(t *testing.T, f *ib.Fabric) func(c *Config) {
	return func(c *Config) {
		require.NoError(t, f.Add(c.Name))
		l, err := ib.Open(ib.Config{Name: c.Name, Device: c.Name, Fabric: f})
		require.NoError(t, err)
		c.Rails = append(c.Rails, Rail{Network: p2psap.InfiniBand, Link: l})
		overEthernet(c)
	}
}

func overEthernet(c *Config) {
	c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog()
	c.Monitor.RailDwell = 20 * time.Millisecond
}

// on waits until a session uses a network.
func on(t *testing.T, s *Socket, k p2psap.Network) {
	t.Helper()
	await.Until(t, func() bool { return s.Info().Conditions.Network == k }, "the session on %v", k)
}

// A session uses a rail that both ends have. Its port goes down and up at either end, and the session leaves
// and returns, again and again, while messages are sent both ways: each arrives once and in order.
func TestRailGoesDownAndComesBack(t *testing.T) {
	f := ib.NewSoftwareFabric()
	port := func(name string, up bool) { require.NoError(t, f.SetPort(name, up)) }
	movesWithoutLoss(t, p2psap.InfiniBand, onFabric(t, f), port)
}

// The same over shared memory and over TCP, whose connections break at either end and are made anew.
func TestConnectionBreaks(t *testing.T) {
	for network, open := range map[p2psap.Network]func(name string) (microproto.Link, error){
		p2psap.SharedMemory: func(name string) (microproto.Link, error) { return shm.Open(shm.Config{Name: name}) },
		p2psap.Stream: func(name string) (microproto.Link, error) {
			return stream.Open(stream.Config{Name: name, Listen: "127.0.0.1"})
		},
	} {
		t.Run(network.String(), func(t *testing.T) {
			links := map[string]microproto.Connected{}
			rail := func(c *Config) {
				l, err := open(c.Name)
				require.NoError(t, err)
				links[c.Name] = l.(microproto.Connected)
				c.Rails = append(c.Rails, Rail{Network: network, Link: l})
				overEthernet(c)
			}
			movesWithoutLoss(t, network, rail, func(name string, up bool) {
				for addr := microproto.LinkAddr(1); !up && addr < 100; addr++ {
					links[name].Forget(addr) // as if the process had ended; the node does not know
				}
			})
		})
	}
}

func movesWithoutLoss(t *testing.T, network p2psap.Network, rail func(*Config), set func(name string, up bool)) {
	a, b := start(t, "a", rail), start(t, "b", rail)
	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	require.Equal(t, network, sa.Info().Conditions.Network, sa.Info().NetworkReason)
	require.Equal(t, network, sb.Info().Conditions.Network)
	ctx := limit(t)
	var wg sync.WaitGroup
	over := make(chan struct{})
	counts := make(chan uint64, 2)
	for _, s := range []*Socket{sa, sb} {
		wg.Go(func() { // sends until it is over, and then says how many there were
			sent := uint64(0)
			for last := p2psap.Transfer(0); ; {
				data := binary.BigEndian.AppendUint64(nil, sent)
				select {
				case <-over:
					for r := (p2psap.Ready{}); !r.Accepted; {
						var err error
						if r, err = s.Wait(ctx, last); err != nil {
							t.Error("wait:", err)
							return
						}
					}
					counts <- sent
					return
				default:
				}
				var err error
				if last, err = s.Send(ctx, 2, p2psap.Label(sent), data); err != nil {
					t.Error("send:", err)
					return
				}
				sent++
			}
		})
	}
	var got [2]uint64
	var mu sync.Mutex
	var readers sync.WaitGroup
	for i, s := range []*Socket{sa, sb} {
		readers.Go(func() {
			slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
			for {
				_, fresh, err := s.Poll(&slot)
				if errors.Is(err, p2psap.ErrClosed) {
					return // below: everything had come
				}
				mu.Lock()
				if err != nil || fresh && binary.BigEndian.Uint64(slot.Data) != got[i] {
					t.Error("lost, doubled or out of order:", got[i], slot.Data, err)
					mu.Unlock()
					return
				}
				if fresh {
					got[i]++
				}
				mu.Unlock()
				if !fresh {
					_, _ = s.Wait(ctx, 0)
				}
			}
		})
	}
	for i, name := range []string{"a", "b"} {
		set(name, false)
		for _, s := range []*Socket{sa, sb} {
			await.Until(t, func() bool { return s.Info().Moves > uint32(2*i) }, "the session to leave %v", network)
		}
		set(name, true)
		on(t, sa, network)
		on(t, sb, network)
	}
	close(over)
	wg.Wait()
	x, y := <-counts, <-counts
	await.Until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got[0]+got[1] == x+y && (got[0] == x || got[0] == y)
	}, "every message")
	// A move counts once both ends have made it, which is after the session shows its new network.
	await.Until(t, func() bool { return sa.Info().Moves == 4 }, "the last move to end")
	require.NoError(t, sa.Close())
	readers.Wait()
	require.EqualValues(t, 4, sa.Info().Moves)
	require.EqualValues(t, 2, a.Rails("b")[0].Failures)
	require.Greater(t, x, uint64(100))
}

// Peers without the rail are reached over Ethernet, and so is one whose adapter is on another fabric. Each
// pair uses its best rail.
func TestMixedRails(t *testing.T) {
	f, g := ib.NewSoftwareFabric(), ib.NewSoftwareFabric()
	a, b := start(t, "a", onFabric(t, f)), start(t, "b", onFabric(t, f))
	c := start(t, "c", overEthernet)
	d := start(t, "d", func(c *Config) {
		onFabric(t, g)(c)
		require.NoError(t, g.SetPort("d", false)) // from the beginning
	})
	for _, x := range [][2]*Node{{a, b}, {a, c}, {b, c}, {a, d}} {
		join(t, x[0], x[1])
	}
	want := func(x, y *Node, k p2psap.Network) {
		t.Helper()
		sx, sy := open(t, x, y, options("s", microproto.ModeAsynchronous))
		require.Equal(t, k, sx.Info().Conditions.Network)
		require.Equal(t, k, sy.Info().Conditions.Network)
	}
	want(a, b, p2psap.InfiniBand)
	want(a, c, p2psap.Ethernet)
	want(b, c, p2psap.Ethernet)
	want(a, d, p2psap.Ethernet)
	require.Nil(t, a.Rails("c"))
	require.Contains(t, a.Rails("d")[0].Reason, "down")
}

// Close ends everything also while a session moves to another rail.
func TestCloseDuringMove(t *testing.T) {
	f := ib.NewSoftwareFabric()
	a, b := start(t, "a", onFabric(t, f)), start(t, "b", onFabric(t, f))
	join(t, a, b)
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	_, err := sa.Send(limit(t), 2, 1, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, f.SetPort("b", false))
	require.NoError(t, a.Close())
	_, err = sa.Send(limit(t), 2, 2, make([]byte, 8))
	require.True(t, errors.Is(err, p2psap.ErrClosed))
}
