package microproto

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type aheadProtocol struct {
	name  string
	event Event[*int]
	_     [300]byte
	ran   int
}

func (p *aheadProtocol) Name() string { return p.name }

func (p *aheadProtocol) Attach(b *Binder) error {
	Bind(b, p.event, Normal, func(_ *Exec, n *int) { p.ran += *n })
	return nil
}

// covers tells whether a composite looks at every line of a variable.
func covers[T any](c *Composite, v *T) bool {
	have := map[uintptr]bool{}
	for _, l := range c.ahead.lines {
		have[lineOf(l)] = true
	}
	for i := range unsafe.Sizeof(*v) {
		if !have[lineOf((*byte)(unsafe.Add(unsafe.Pointer(v), i)))] {
			return false
		}
	}
	return true
}

// A composite of a crowd looks at what its micro-protocols and the layer above have, each
// line once; and nothing else changes.
func TestLookAhead(t *testing.T) {
	event := NewEvent[*int]("test.ahead")
	first, second, third := &aheadProtocol{name: "first", event: event}, &aheadProtocol{name: "second", event: event}, &aheadProtocol{name: "third", event: event}
	c, err := NewComposite(Config{Name: "ahead", MTU: 100}, first, second)
	require.NoError(t, err)
	require.NoError(t, c.Open(0))
	require.Empty(t, c.ahead.lines, "only when asked for")
	beside := new([500]byte)
	c.LookAhead(beside)
	require.True(t, covers(c, first) && covers(c, second) && covers(c, beside))
	require.True(t, covers(c, &c.x) && covers(c, &c.pool) && covers(c, &c.chains.find(event.id).entries[1]))
	require.False(t, covers(c, third))
	lines := map[uintptr]bool{}
	for _, l := range c.ahead.lines {
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
