package driver

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

func limit(t *testing.T) context.Context { return await.Context(t) }

// goroutinesEnd waits until there is at most one goroutine more than before.
func goroutinesEnd(t *testing.T, before int) {
	t.Helper()
	await.Until(t, func() bool { return runtime.NumGoroutine() <= before+1 }, "the end of all goroutines but %d", before+1)
}

// start runs a node over UDP on loopback.
func start(t *testing.T, name string, change func(*Config)) *Node {
	t.Helper()
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	require.NoError(t, err)
	c := Config{
		Name: name, Rails: []Rail{{Network: p2psap.Memory, Link: link}}, Listen: "127.0.0.1:0", Catalog: standIns(),
		Policy: p2psap.TablePolicy{}, Run: "test", Version: "v1", Linger: 150 * time.Millisecond,
	}
	if change != nil {
		change(&c)
	}
	c.Plain = c.Identity == nil
	n, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// join connects two nodes, from both ends at once.
func join(t *testing.T, a, b *Node) {
	t.Helper()
	ctx := limit(t)
	var wg sync.WaitGroup
	for _, x := range [][2]*Node{{a, b}, {b, a}} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := x[0].Connect(ctx, x[1].config.Name, x[1].ControlAddr().String()); err != nil {
				t.Errorf("connect: %v", err)
			}
		}()
	}
	wg.Wait()
}

// open opens a session at both ends.
func open(t *testing.T, a, b *Node, o p2psap.OpenOptions) (sa, sb *Socket) {
	t.Helper()
	return atBoth(t, a, b, func(n *Node, peer string) (*Socket, error) { return n.Open(limit(t), peer, o) })
}

// atBoth calls open at both ends at once.
func atBoth[T any](t *testing.T, a, b *Node, open func(n *Node, peer string) (T, error)) (ofA, ofB T) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		var err error
		ofB, err = open(b, a.config.Name)
		done <- err
	}()
	ofA, err := open(a, b.config.Name)
	require.NoError(t, err)
	require.NoError(t, <-done)
	return ofA, ofB
}

func options(name string, m microproto.Mode) p2psap.OpenOptions {
	return p2psap.OpenOptions{Name: name, Mode: m, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 512}, {Tag: 2, Length: 8}}}
}

// channels are the micro-protocols of a session: the stand-ins, and those of the Ethernet columns.
func channels() map[string]func(*Config) {
	return map[string]func(*Config){
		"stand-ins": nil,
		"ctp":       func(c *Config) { c.Rails[0].Network, c.Catalog = p2psap.Ethernet, ctp.Catalog() },
		"protected": known(p2psap.ProtectAlways),
	}
}

func TestSynchronousExchange(t *testing.T) {
	for name, change := range channels() {
		t.Run(name, func(t *testing.T) { exchangeBothWays(t, start(t, "a", change), start(t, "b", change)) })
	}
}

func exchangeBothWays(t *testing.T, a, b *Node) {
	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	const messages = 2000
	ctx := limit(t)
	var wg sync.WaitGroup
	for _, s := range []*Socket{sa, sb} {
		wg.Add(2)
		go func() {
			defer wg.Done()
			data := make([]byte, messages*8)
			var last p2psap.Transfer
			for i := range uint64(messages) {
				binary.LittleEndian.PutUint64(data[8*i:], i)
				tr, err := s.Send(ctx, 2, p2psap.Label(i), data[8*i:8*i+8])
				if err != nil || tr != last+1 {
					t.Errorf("send %d: transfer %d, %v", i, tr, err)
					return
				}
				last = tr
			}
			for {
				r, err := s.Wait(ctx, last)
				if err != nil {
					t.Errorf("wait: %v", err)
					return
				}
				if r.Accepted {
					return
				}
			}
		}()
		go func() {
			defer wg.Done()
			slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
			for i := range uint64(messages) {
				got, err := s.Receive(ctx, &slot)
				if err != nil || got.Label != i || binary.LittleEndian.Uint64(slot.Data) != i {
					t.Errorf("receive %d: %+v, %v", i, got, err)
					return
				}
			}
		}()
	}
	wg.Wait()
	require.Equal(t, uint64(messages), sa.Info().MessagesReceived)
	require.Equal(t, p2psap.SameProcess, sa.Info().Conditions.Locality)
	require.NoError(t, sa.Close())
	_, err := sb.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
	require.ErrorIs(t, err, p2psap.ErrPeerClosed)
	require.NoError(t, sb.Close())
	require.NoError(t, sb.Close(), "twice")
	_, err = sb.Send(ctx, 2, 0, make([]byte, 8))
	require.ErrorIs(t, err, p2psap.ErrClosed)
	require.Equal(t, uint64(messages), sb.Info().MessagesSent, "known after the end too")
}

func TestAsynchronousNewestWins(t *testing.T) {
	a, b := start(t, "a", nil), start(t, "b", nil)
	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeAsynchronous))
	ctx := limit(t)
	slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
	_, fresh, err := sb.Poll(&slot)
	require.NoError(t, err)
	require.False(t, fresh)
	for i := range uint64(100) {
		tr, err := sa.TrySend(2, p2psap.Label(i), binary.LittleEndian.AppendUint64(nil, i))
		require.NoError(t, err)
		ready, err := sa.Wait(ctx, tr)
		require.NoError(t, err)
		require.True(t, ready.Accepted)
	}
	for slot.Data[0] != 99 {
		_, err := sb.Wait(ctx, 0)
		require.NoError(t, err)
		_, _, err = sb.Poll(&slot)
		require.NoError(t, err)
	}
}

func TestWaitAnyTimesOut(t *testing.T) {
	a, b := start(t, "a", nil), start(t, "b", nil)
	join(t, a, b)
	sa, _ := open(t, a, b, options("s", microproto.ModeAsynchronous))
	ctx := limit(t)
	for b.WaitAny(ctx, 0) == nil && b.arrivedNow() {
	}
	before := b.now()
	require.NoError(t, b.WaitAny(ctx, 100*time.Microsecond))
	require.GreaterOrEqual(t, b.now().Sub(before), 100*time.Microsecond)
	_, err := sa.Send(ctx, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, b.WaitAny(ctx, NoTimeout))
	require.NoError(t, ctx.Err())
	short, cancel := context.WithCancel(ctx)
	cancel()
	for err = nil; err == nil; err = b.WaitAny(short, NoTimeout) {
	}
	require.ErrorIs(t, err, context.Canceled)
}

func (n *Node) arrivedNow() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.activity
}

// Blocked calls return when the session, the node, the context or the peer ends.
func TestBlockedCallsEnd(t *testing.T) {
	type act func(a, b *Node, sa, sb *Socket, cancel func())
	for name, c := range map[string]struct {
		do   act
		want error
	}{
		"context":  {func(_, _ *Node, _, _ *Socket, cancel func()) { cancel() }, context.Canceled},
		"socket":   {func(_, _ *Node, sa, _ *Socket, _ func()) { _ = sa.Close() }, p2psap.ErrClosed},
		"node":     {func(a, _ *Node, _, _ *Socket, _ func()) { _ = a.Close() }, p2psap.ErrClosed},
		"far end":  {func(_, _ *Node, _, sb *Socket, _ func()) { _ = sb.Close() }, p2psap.ErrPeerClosed},
		"far node": {func(_, b *Node, _, _ *Socket, _ func()) { _ = b.Close() }, p2psap.ErrPeerClosed},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := start(t, "a", nil), start(t, "b", nil)
			join(t, a, b)
			sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
			ctx, cancel := context.WithCancel(limit(t))
			defer cancel()
			calls := map[string]func() error{
				"receive": func() error { _, err := sa.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)}); return err },
				"wait":    func() error { _, err := sa.Wait(ctx, 0); return err },
				"send": func() error { // past the grant: nobody receives
					for {
						if _, err := sa.Send(ctx, 1, 0, make([]byte, 512)); err != nil {
							return err
						}
					}
				},
			}
			results := make(chan string, len(calls))
			for name, call := range calls {
				go func() {
					if err := call(); err == nil || !strings.Contains(fmt.Sprint(err), c.want.Error()) {
						results <- fmt.Sprintf("%s: %v", name, err)
					} else {
						results <- ""
					}
				}()
			}
			blocked := func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(sa.waiters.list) == len(calls)
			}
			await.Until(t, blocked, "%d calls that block", len(calls))
			c.do(a, b, sa, sb, cancel)
			for range calls {
				require.Empty(t, <-results)
			}
		})
	}
}

func TestOpenThatNobodyAnswers(t *testing.T) {
	a, b := start(t, "a", nil), start(t, "b", nil)
	join(t, a, b)
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := a.Open(ctx, "b", options("s", microproto.ModeSynchronous))
		done <- err
	}()
	await.Until(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.sockets) == 1
	}, "the session to be opened")
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `session "s" with "b" (opening)`)
	// Later both want it.
	open(t, a, b, options("s", microproto.ModeSynchronous))
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Len(t, a.sockets, 1)
}

func TestConnectFails(t *testing.T) {
	a := start(t, "b", nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	err = connectOnce(t, a, "a", l.Addr())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "refused")

	other := start(t, "a", func(c *Config) { c.Version = "v2" })
	err = a.Connect(limit(t), "a", other.ControlAddr().String())
	var refused *p2psap.RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, `program version: this end has "v1", the peer "v2"`)

	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	require.NoError(t, err)
	_, err = New(Config{Name: "c", Plain: true, Rails: []Rail{{Link: link}}, Listen: a.ControlAddr().String(),
		Catalog: standIns(), Policy: p2psap.TablePolicy{}})
	require.ErrorContains(t, err, "in use")
	_, err = link.Recv(make([]microproto.Frame, 1))
	require.ErrorIs(t, err, net.ErrClosed, "New owns the link, also when it fails")
	link, err = ether.Open(ether.Config{Listen: "127.0.0.1"})
	require.NoError(t, err)
	_, err = New(Config{Name: "c", Rails: []Rail{{Link: link}}})
	require.ErrorContains(t, err, "no Identity")
	_, err = link.Recv(make([]microproto.Frame, 1))
	require.ErrorIs(t, err, net.ErrClosed, "New owns the link, also when the configuration is wrong")
}

// A stopped process keeps its connections open and is silent: the peer is lost. Before that, heartbeats alone
// keep it up.
func TestStoppedPeerIsLost(t *testing.T) {
	t.Parallel() // it mostly waits
	const timeout = 500 * time.Millisecond
	a := start(t, "a", func(c *Config) { c.PeerTimeout = timeout })
	// What ends the peer is the node's own time-out, not that of the other.
	b := start(t, "b", func(c *Config) { c.PeerTimeout, c.Heartbeat = time.Hour, timeout/20 })
	join(t, a, b)
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	ctx := limit(t)
	for beats := a.Stats().ControlIn + 30; a.Stats().ControlIn < beats; { // for longer than the time-out
		require.NoError(t, a.WaitAny(ctx, 10*time.Millisecond))
	}
	b.mu.Lock() // every goroutine of b stands still
	for {
		if err := a.WaitAny(ctx, NoTimeout); err != nil {
			var lost *p2psap.PeerLostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, "b", lost.Peer)
			require.GreaterOrEqual(t, lost.Silent, timeout)
			break
		}
	}
	_, err := sa.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
	var lost *p2psap.PeerLostError
	require.ErrorAs(t, err, &lost)
	require.NoError(t, sa.Close())
	b.mu.Unlock()
}

func TestGarbageOnEveryPort(t *testing.T) {
	// The first four are refused for what they say, the last for what it does not say in time.
	a, b := start(t, "a", func(c *Config) { c.Handshake = time.Hour }), start(t, "b", nil)
	hasty := start(t, "hasty", func(c *Config) { c.Handshake = 50 * time.Millisecond })
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x00\x03abc",
		"\x00\x00\x00\x14P2" + string([]byte{p2psap.ControlVersion, 2}) + "aaaaaaaabbbbbbbb", "\x00"} {
		to := a
		if garbage == "\x00" {
			to = hasty
		}
		tcp, err := net.Dial("tcp", to.ControlAddr().String())
		require.NoError(t, err)
		_, err = io.WriteString(tcp, garbage)
		require.NoError(t, err)
		n, _ := io.Copy(io.Discard, tcp) // returns when the node has ended the connection
		require.Zero(t, n)
		require.NoError(t, tcp.Close())
	}
	require.Equal(t, uint64(2), a.Stats().ControlGarbage)
	require.Equal(t, uint64(2), a.Stats().ControlMalformed)
	require.Zero(t, a.Stats().HandshakesExpired)
	require.Zero(t, hasty.Stats().ControlGarbage+hasty.Stats().ControlMalformed)
	require.Equal(t, uint64(1), hasty.Stats().HandshakesExpired)

	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	udp, err := net.Dial("udp", a.config.Rails[0].Link.(*ether.Link).LocalAddr().String())
	require.NoError(t, err)
	for _, garbage := range []string{"x", "\x01\x00\x00\x00\x00\x00\x00\x00", strings.Repeat("P2", 600)} {
		_, err = io.WriteString(udp, garbage)
		require.NoError(t, err)
	}
	require.NoError(t, udp.Close())
	ctx := limit(t)
	_, err = sb.Send(ctx, 2, 7, make([]byte, 8))
	require.NoError(t, err)
	got, err := sa.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
	require.NoError(t, err)
	require.Equal(t, uint64(7), got.Label)
}

// No goroutine is left after Close.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	a, b, c := start(t, "a", nil), start(t, "b", nil), start(t, "c", nil)
	join(t, a, b)
	join(t, a, c)
	sa, _ := open(t, a, b, options("s", microproto.ModeSynchronous))
	_, err := sa.Send(limit(t), 2, 1, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
	goroutinesEnd(t, before)
	require.ErrorIs(t, a.Connect(limit(t), "b", ""), p2psap.ErrClosed)
	_, err = a.Open(limit(t), "b", options("s", microproto.ModeSynchronous))
	require.ErrorIs(t, err, p2psap.ErrClosed)
	require.ErrorIs(t, a.WaitAny(limit(t), NoTimeout), p2psap.ErrClosed)
}

// Neither mode allocates in steady state, blocking calls included. Heartbeats do; there are none in this
// test.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, change := range channels() {
		t.Run(name, func(t *testing.T) {
			still := func(c *Config) {
				if change != nil {
					change(c)
				}
				c.PeerTimeout, c.Heartbeat = 100*time.Hour, 24*time.Hour
			}
			allocates(t, start(t, "a", still), start(t, "b", still))
		})
	}
}

func allocates(t *testing.T, a, b *Node) {
	join(t, a, b)
	ctx := limit(t)
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		sa, sb := open(t, a, b, options("s"+mode.String(), mode))
		data, back := make([]byte, 512), p2psap.Slot{Tag: 1, Data: make([]byte, 512)}
		label := uint64(0)
		exchange := func() {
			label++
			tr, err := sa.Send(ctx, 1, p2psap.Label(label), data)
			if err != nil {
				t.Fatal(err)
			}
			for {
				if err := b.WaitAny(ctx, time.Second); err != nil {
					t.Fatal(err)
				}
				got, fresh, err := sb.Poll(&back)
				if err != nil {
					t.Fatal(err)
				}
				if fresh && got.Label == label {
					break
				}
			}
			for accepted := false; !accepted; {
				r, err := sa.Wait(ctx, tr)
				if err != nil {
					t.Fatal(err)
				}
				accepted = r.Accepted
			}
		}
		for range 100 {
			exchange()
		}
		require.Zero(t, testing.AllocsPerRun(2000, exchange), mode)
	}
}
