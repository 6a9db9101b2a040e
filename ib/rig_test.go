package ib

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// tester is a *testing.T, *testing.B, *testing.F or *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Failed() bool
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// rig is a fabric of software with links on it, each on an adapter of its own under its
// name. Nothing is left on the fabric when the test ends.
type rig struct {
	tester
	fabric *Fabric
}

func newRig(tb tester, c software.Config) *rig {
	f := newFabric(c)
	tb.Cleanup(func() {
		if !tb.Failed() {
			require.Equal(tb, software.Counts{}, f.software.Live(), "nothing has leaked")
		}
	})
	return &rig{tb, f}
}

// open opens a link; it is closed when the test ends.
func (r *rig) open(name string, c Config) *Link {
	r.Helper()
	c.Name, c.Device, c.Fabric = name, name, r.fabric
	require.NoError(r, r.fabric.Add(name))
	l, err := Open(c)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, l.Close()) })
	return l
}

// join introduces two links.
func (r *rig) join(a, b *Link) (toB, toA microproto.LinkAddr) {
	r.Helper()
	offerA, err := a.Offer(b.config.Name)
	require.NoError(r, err)
	offerB, err := b.Offer(a.config.Name)
	require.NoError(r, err)
	toA, err = b.Accept(offerA)
	require.NoError(r, err)
	toB, err = a.Accept(offerB)
	require.NoError(r, err)
	return toB, toA
}

// pair is two joined links of the same settings.
func (r *rig) pair(c Config) (a, b *Link, toB, toA microproto.LinkAddr) {
	r.Helper()
	a, b = r.open("a", c), r.open("b", c)
	toB, toA = r.join(a, b)
	return a, b, toB, toA
}

// ways are the three ways to carry a message.
func ways() map[string]Config {
	return map[string]Config{
		"segments":  {},
		"messages":  {MessageBytes: 1 << 16, Peers: 2},
		"one-sided": {WindowSlots: 64},
		"both":      {MessageBytes: 1 << 16, Peers: 2, WindowSlots: 8},
	}
}

// until polls a link until a condition holds.
func until(tb tester, what string, links []*Link, got func(microproto.Frame), done func() bool) {
	tb.Helper()
	batch := make([]microproto.Frame, 32)
	await.Until(tb, func() bool {
		for n := range 100 { // without a pause at first
			if done() {
				return true
			}
			take(tb, links, batch, got)
			if n > 0 {
				runtime.Gosched()
			}
		}
		return false
	}, "%s", what)
}

// take receives what has come.
func take(tb tester, links []*Link, batch []microproto.Frame, got func(microproto.Frame)) {
	tb.Helper()
	for _, l := range links {
		n, err := l.TryRecv(batch)
		require.NoError(tb, err)
		for i := range batch[:n] {
			if got != nil {
				got(batch[i])
			}
			batch[i].Release()
		}
	}
}

// drain receives until the link is closed, and returns when it has begun.
func drain(l *Link) {
	begun := make(chan struct{})
	go func() {
		close(begun)
		batch := make([]microproto.Frame, 8)
		for {
			n, err := l.Recv(batch)
			if err != nil {
				return
			}
			for i := range batch[:n] {
				batch[i].Release()
			}
		}
	}()
	<-begun
}

// events are those that a link tells.
type events chan microproto.LinkEvent

func watch(l *Link) events {
	e := make(events, 64)
	l.Watch(func(x microproto.LinkEvent) { e <- x })
	return e
}

// next waits for an event.
func (e events) next(tb tester) microproto.LinkEvent {
	tb.Helper()
	return <-e
}

// pass sends frames of both modes each way until all have come.
func pass(tb tester, a, b *Link, toB, toA microproto.LinkAddr) {
	tb.Helper()
	for _, x := range []struct {
		from, to *Link
		addr     microproto.LinkAddr
	}{{a, b, toB}, {b, a, toA}} {
		for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			f := message(x.from, x.addr, m, uint64(m)-1, 77, 600, false)
			_, err := x.from.Send([]microproto.Frame{f})
			require.NoError(tb, err)
			came := 0
			until(tb, "a frame of "+m.String(), []*Link{a, b}, func(f microproto.Frame) { came++ }, func() bool { return came > 0 })
		}
	}
}
