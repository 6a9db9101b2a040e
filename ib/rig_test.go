package ib

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

// rig is a fabric of software with links on it, each on an adapter of its own under its
// name. Nothing is left on the fabric when the test ends.
type rig struct {
	testing.TB
	fabric *Fabric
}

func newRig(tb testing.TB, c software.Config) *rig {
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

// patience bounds every wait.
const patience = 10 * time.Second

// until polls a link until a condition holds.
func until(tb testing.TB, what string, links []*Link, got func(microproto.Frame), done func() bool) {
	tb.Helper()
	batch := make([]microproto.Frame, 32)
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			require.Fail(tb, "in vain", "%s", what)
		}
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
}

// fill makes a frame of n bytes that shows its number everywhere.
func fill(l *Link, to microproto.LinkAddr, number uint32, n int) microproto.Frame {
	f := l.Acquire(n)
	f.Peer = to
	for i := range f.Data {
		f.Data[i] = byte(number) + byte(i*7)
	}
	return f
}

func intact(data []byte, number uint32) error {
	for i := range data {
		if want := byte(number) + byte(i*7); data[i] != want {
			return fmt.Errorf("byte %d of %d is %#x, want %#x", i, len(data), data[i], want)
		}
	}
	return nil
}
