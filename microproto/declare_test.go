package microproto_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// Header bytes lie in the order of attachment; attributes are where the layout says.
func TestLayout(t *testing.T) {
	var tail microproto.Attr[uint32]
	head := of("head", func(b *binder) { b.Header(3) })
	last := of("tail", func(b *binder) { tail = microproto.WireAttr[uint32](b, "tail") })
	check := func(offset int, mps ...microproto.MicroProtocol) *microproto.Composite {
		c := composite(t, microproto.Config{}, mps...)
		do(t, c, func(x *exec) {
			m, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			tail.Set(m, 0xa1b2c3d4)
			require.Equal(t, []byte{0xa1, 0xb2, 0xc3, 0xd4}, m.Header()[offset:offset+4])
			require.EqualValues(t, 0xa1b2c3d4, tail.Get(m))
			x.Done(m)
		})
		require.Equal(t, offset+4, c.HeaderBytes())
		return c
	}
	alone, both := check(0, last), check(3, head, last)
	require.Equal(t, []microproto.Region{
		{Protocol: "head", Offset: 0, Length: 3}, {Protocol: "tail", Name: "tail", Offset: 3, Length: 4},
	}, both.Layout())
	require.NotEqual(t, alone.Fingerprint(), both.Fingerprint())
	require.Equal(t, both.Fingerprint(), check(3, head, last).Fingerprint())
}

// Two ends whose micro-protocols have other versions do not understand each other.
func TestVersionIsPartOfTheFingerprint(t *testing.T) {
	version := func(v uint16) uint64 {
		return composite(t, microproto.Config{}, of("p", func(b *binder) {
			if v != 0 {
				b.Version(v)
			}
		})).Fingerprint()
	}
	require.Equal(t, version(0), version(1), "the default is 1")
	require.NotEqual(t, version(1), version(2))
}

// What the layer above reads of the micro-protocols is there by name and type.
func TestCompositeCell(t *testing.T) {
	var retransmitted *uint64
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		retransmitted = microproto.DeclareCell(b, microproto.CellRetransmitted, uint64(3))
	}))
	cell, ok := microproto.CompositeCell[uint64](c, microproto.CellRetransmitted)
	require.True(t, ok)
	*retransmitted = 4
	require.EqualValues(t, 4, *cell)
	_, ok = microproto.CompositeCell[int](c, microproto.CellRetransmitted)
	require.False(t, ok, "another type")
	_, ok = microproto.CompositeCell[uint64](c, microproto.CellReplaced)
	require.False(t, ok, "not declared")
}

// Close cancels timers and drops what is held; nothing fires afterwards.
func TestCloseCancelsTimers(t *testing.T) {
	fired := false
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, microproto.OpenSession, 0, func(x *exec, _ struct{}) {
			v := 1
			microproto.RaiseAfter(x, alarm, 5, &v)
			microproto.RaiseAfter(x, alarm, 7, &v)
		})
		microproto.Bind(b, alarm, 0, func(*exec, *int) { fired = true })
	}))
	require.Equal(t, microproto.Instant(5), c.Deadline())
	require.NoError(t, c.Close(0))
	require.Equal(t, microproto.Never, c.Deadline())
	require.NoError(t, c.Advance(10))
	require.False(t, fired)
}
