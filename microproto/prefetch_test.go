package microproto

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type prefetchProtocol struct {
	name  string
	event Event[*int]
	_     [300]byte
	ran   int
}

func (p *prefetchProtocol) Name() string { return p.name }

func (p *prefetchProtocol) Attach(b *Binder) error {
	Bind(b, p.event, Normal, func(_ *Exec, n *int) { p.ran += *n })
	return nil
}

// covers reports whether a composite prefetches every line of a variable.
func covers[T any](c *Composite, v *T) bool {
	have := map[uintptr]bool{}
	for _, l := range c.prefetch.lines {
		have[lineOf(l)] = true
	}
	for i := range unsafe.Sizeof(*v) {
		if !have[lineOf((*byte)(unsafe.Add(unsafe.Pointer(v), i)))] {
			return false
		}
	}
	return true
}

// Prefetching reads the memory of the composite, its micro-protocols and the layer above,
// each line once, and changes nothing else.
func TestPrefetch(t *testing.T) {
	event := NewEvent[*int]("test.prefetch")
	first, second := &prefetchProtocol{name: "first", event: event}, &prefetchProtocol{name: "second", event: event}
	third := &prefetchProtocol{name: "third", event: event}
	c, err := NewComposite(Config{Name: "prefetch", MTU: 100}, first, second)
	require.NoError(t, err)
	require.NoError(t, c.Open(0))
	require.Empty(t, c.prefetch.lines, "only after Prefetch")
	other := new([500]byte)
	c.Prefetch(other)
	require.True(t, covers(c, first) && covers(c, second) && covers(c, other))
	require.True(t, covers(c, &c.x) && covers(c, &c.pool) && covers(c, &c.chains.find(event.id).entries[1]))
	require.False(t, covers(c, third))
	lines := map[uintptr]bool{}
	for _, l := range c.prefetch.lines {
		require.False(t, lines[lineOf(l)])
		lines[lineOf(l)] = true
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		n := 1
		require.NoError(t, c.Do(c.now+1, func(x *Exec) { Raise(x, event, &n) }))
	})-testing.AllocsPerRun(10, func() {
		n := 1
		require.NoError(t, c.Do(c.now, func(x *Exec) { Raise(x, event, &n) }))
	}))
	require.Equal(t, []int{22, 22, 0}, []int{first.ran, second.ran, third.ran})
}
