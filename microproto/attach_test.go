package microproto_test

import (
	"errors"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// keeper holds every segment going down and hands the list to its successor,
// which releases them.
func keeper(name string, kept *[]*message, header int) *handing {
	var bit microproto.HoldBit
	return &handing{
		proto: of(name, func(b *binder) {
			bit = b.HoldBit(name)
			if header > 0 {
				b.Header(header)
			}
			microproto.Bind(b, microproto.SegmentFromUser, 0, func(x *exec, m *message) {
				x.Hold(m, bit)
				*kept = append(*kept, m)
			})
		}),
		detach: func(x *exec) (microproto.State, error) { return *kept, nil },
		adopt: func(x *exec, s microproto.State) error {
			for _, m := range s.([]*message) {
				x.Hold(m, bit)
			}
			*kept = s.([]*message)
			return nil
		},
	}
}

func TestReplaceHandsStateOverWhileMessagesAreHeld(t *testing.T) {
	var first, second []*message
	c := composite(t, microproto.Config{}, mptest.Top(), keeper("keeper", &first, 2), mptest.Bottom(nil))
	for _, s := range []string{"a", "b", "c"} {
		require.NoError(t, submit(c, 0, s))
	}
	require.Len(t, first, 3)
	require.Equal(t, 3, c.Counters().Held)
	before := c.Fingerprint()
	require.NoError(t, c.Replace(0, "keeper", keeper("keeper", &second, 2)))
	require.Equal(t, before, c.Fingerprint())
	require.Equal(t, []string{"mptest.top", "keeper", "mptest.bottom"}, c.Names(), "it keeps its place")
	require.Len(t, second, 3)
	require.Zero(t, c.Counters().Transmitted, "held by the successor before the predecessor let go")
	do(t, c, func(x *exec) {
		for _, m := range second {
			x.Release(m, x.Held(m))
		}
	})
	require.EqualValues(t, 3, c.Counters().Transmitted)
	require.NoError(t, submit(c, 0, "d"))
	require.Len(t, first, 3, "the predecessor's handlers are unbound")
	require.Len(t, second, 4)
}

func TestDetachReleasesWhatWasLeftHeld(t *testing.T) {
	var kept []*message
	c := composite(t, microproto.Config{}, mptest.Top(), keeper("keeper", &kept, 0), mptest.Bottom(nil))
	require.NoError(t, submit(c, 0, "a"))
	require.NoError(t, submit(c, 0, "b"))
	s, err := c.Detach(0, "keeper")
	require.NoError(t, err)
	require.Len(t, s, 2)
	n := c.Counters()
	require.EqualValues(t, 2, n.Transmitted)
	require.Zero(t, n.Live)
	require.NoError(t, c.Attach(0, keeper("keeper", &kept, 0), microproto.State([]*message(nil))))
	require.Equal(t, []string{"mptest.top", "mptest.bottom", "keeper"}, c.Names())
}

func TestTheLayoutDoesNotChangeWhileMessagesLive(t *testing.T) {
	var kept []*message
	c := composite(t, microproto.Config{}, mptest.Top(), keeper("keeper", &kept, 2), mptest.Bottom(nil))
	require.NoError(t, submit(c, 0, "a"))
	before, names := c.Fingerprint(), c.Names()
	require.ErrorIs(t, c.Replace(0, "keeper", keeper("keeper", &kept, 3)), microproto.ErrLayout)
	require.ErrorIs(t, c.Attach(0, of("more", func(b *binder) { b.Header(1) }), nil), microproto.ErrLayout)
	_, err := c.Detach(0, "keeper")
	require.ErrorIs(t, err, microproto.ErrLayout)
	require.ErrorContains(t, err, "1 messages live")
	require.Equal(t, before, c.Fingerprint())
	require.Equal(t, names, c.Names())
	require.NoError(t, c.Err())
	require.NoError(t, submit(c, 0, "b"))
	require.Len(t, kept, 2, "it goes on as before")

	do(t, c, func(x *exec) {
		for _, m := range kept {
			x.Release(m, x.Held(m))
		}
	})
	require.NoError(t, c.Attach(0, of("more", func(b *binder) { b.Header(5) }), nil), "none is alive any more")
	require.Equal(t, 7, c.HeaderBytes())
	require.NotEqual(t, before, c.Fingerprint())
	require.Equal(t, []microproto.Region{{Protocol: "keeper", Offset: 0, Length: 2}, {Protocol: "more", Offset: 2, Length: 5}}, c.Layout())
}

func TestAttributesFollowTheLayout(t *testing.T) {
	var tail microproto.Attr[uint32]
	c := composite(t, microproto.Config{}, of("head", func(b *binder) { b.Header(3) }), of("tail", func(b *binder) { tail = microproto.WireAttr[uint32](b, "tail") }))
	check := func(offset int) {
		do(t, c, func(x *exec) {
			m, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			tail.Set(m, 0xa1b2c3d4)
			require.Equal(t, []byte{0xa1, 0xb2, 0xc3, 0xd4}, m.Header()[offset:offset+4])
			require.EqualValues(t, 0xa1b2c3d4, tail.Get(m))
			x.Done(m)
		})
	}
	check(3)
	_, err := c.Detach(0, "head")
	require.NoError(t, err)
	check(0)
}

func TestRefusedAttachmentsChangeNothing(t *testing.T) {
	ran := 0
	c := composite(t, microproto.Config{}, of("p", func(*binder) {}))
	bad := &proto{"bad", func(b *binder) error {
		microproto.Bind(b, again, 0, func(*exec, int) { ran++ })
		b.Header(4)
		microproto.DeclareCell(b, "cell", 1)
		return errors.New("no")
	}}
	before := c.Fingerprint()
	require.ErrorContains(t, c.Attach(0, bad, nil), "attach bad: no")
	require.ErrorContains(t, c.Replace(0, "p", bad), "no")
	require.ErrorContains(t, c.Replace(0, "nobody", bad), `no micro-protocol "nobody"`)
	require.Error(t, c.Attach(0, of("q", func(*binder) {}), 5), "it cannot adopt")
	do(t, c, func(x *exec) { microproto.Raise(x, again, 1) })
	require.Zero(t, ran)
	require.Equal(t, before, c.Fingerprint())
	_, err := microproto.CompositeCell[int](c, "cell")
	require.Error(t, err)
	require.NoError(t, c.Err())
}

func TestDetachCancelsTimersAndStaysIfItMust(t *testing.T) {
	unwilling := true
	h := &handing{
		proto: of("p", func(b *binder) {
			microproto.Bind(b, microproto.OpenSession, 0, func(x *exec, _ struct{}) {
				v := 1
				microproto.RaiseAfter(x, alarm, 5, &v)
			})
			microproto.Bind(b, alarm, 0, func(*exec, *int) {})
			microproto.DeclareCell(b, "kept", 1)
		}),
		detach: func(*exec) (microproto.State, error) {
			if unwilling {
				return nil, errors.New("in the middle of something")
			}
			return nil, nil
		},
	}
	c := composite(t, microproto.Config{}, h)
	cell, err := microproto.CompositeCell[int](c, "kept")
	require.NoError(t, err)
	*cell = 42
	require.Equal(t, microproto.Instant(5), c.Deadline())
	_, err = c.Detach(0, "p")
	require.ErrorContains(t, err, "in the middle of something")
	require.Equal(t, microproto.Instant(5), c.Deadline())
	unwilling = false
	_, err = c.Detach(0, "p")
	require.NoError(t, err)
	require.Equal(t, microproto.Never, c.Deadline())
	require.NoError(t, c.Attach(0, h, nil))
	require.Equal(t, microproto.Instant(5), c.Deadline(), "attached to an open composite it starts at once")
	require.Equal(t, 42, *cell, "cells stay for a successor")
}

func TestLocalAttributesDoNotLeakToTheNextDeclarer(t *testing.T) {
	var a, b2 microproto.Attr[uint64]
	c := composite(t, microproto.Config{}, of("p", func(b *binder) { a = microproto.LocalAttr[uint64](b, "a") }))
	var m *message
	do(t, c, func(x *exec) {
		var err error
		m, err = x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.False(t, a.Has(m))
		a.Set(m, 7)
		require.True(t, a.Has(m))
	})
	require.NoError(t, c.Replace(0, "p", of("p", func(b *binder) { a = microproto.LocalAttr[uint64](b, "a") })))
	require.EqualValues(t, 7, a.Get(m), "a successor inherits the attribute of the same name")
	require.NoError(t, c.Replace(0, "p", of("p", func(b *binder) { b2 = microproto.LocalAttr[uint64](b, "b") })))
	require.False(t, b2.Has(m))
	require.Zero(t, b2.Get(m))
	b2.Set(m, 8)
	require.NoError(t, c.Replace(0, "p", of("p", func(b *binder) { a = microproto.LocalAttr[uint64](b, "c") })))
	require.False(t, a.Has(m), "the place of the first one is used again, its value is not")
	require.NoError(t, c.Replace(0, "p", of("p", func(b *binder) { b2 = microproto.LocalAttr[uint64](b, "d") })))
	require.False(t, b2.Has(m))
}
