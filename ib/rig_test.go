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

// rig is a software fabric with links, each on an adapter of its own name. It requires that
// nothing is open when the test ends.
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

// open opens a link that is closed when the test ends.
func (r *rig) open(name string, c Config) *Link {
	r.Helper()
	c.Name, c.Device, c.Fabric = name, name, r.fabric
	require.NoError(r, r.fabric.Add(name))
	l, err := Open(c)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, l.Close()) })
	return l
}

// join connects two links.
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

// pair opens and connects two links of the same configuration.
func (r *rig) pair(c Config) (a, b *Link, toB, toA microproto.LinkAddr) {
	r.Helper()
	a, b = r.open("a", c), r.open("b", c)
	toB, toA = r.join(a, b)
	return a, b, toB, toA
}

// transferModes returns the three ways to carry a message.
func transferModes() map[string]Config {
	return map[string]Config{
		"segments":  {},
		"messages":  {MessageBytes: 1 << 16, Peers: 2},
		"one-sided": {WindowSlots: 64},
		"both":      {MessageBytes: 1 << 16, Peers: 2, WindowSlots: 8},
	}
}

// pollUntil polls links until a condition holds.
func pollUntil(tb tester, what string, links []*Link, got func(microproto.Frame), done func() bool) {
	tb.Helper()
	batch := make([]microproto.Frame, 32)
	await.Until(tb, func() bool {
		for n := range 100 { // without sleeps at first
			if done() {
				return true
			}
			receiveAll(tb, links, batch, got)
			if n > 0 {
				runtime.Gosched()
			}
		}
		return false
	}, "%s", what)
}

// receiveAll receives what has arrived.
func receiveAll(tb tester, links []*Link, batch []microproto.Frame, got func(microproto.Frame)) {
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

// drain receives in the background until the link is closed. It returns when it has begun.
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

// events are the events of a link.
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

// pass sends frames of both modes each way until each has arrived.
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
			received := 0
			count := func(microproto.Frame) { received++ }
			pollUntil(tb, "a frame of "+m.String(), []*Link{a, b}, count, func() bool { return received > 0 })
		}
	}
}
