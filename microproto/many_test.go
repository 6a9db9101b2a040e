package microproto_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// The inline arrays of a composite are not limits: further events, cells, attributes, timers and
// enqueued raises work as well as the first.
func TestManyOfEverything(t *testing.T) {
	const many = 150 // as many bytes of header, and local attributes up to their bound
	events := make([]microproto.Event[*int], many)
	cells, flags := make([]*uint64, many), make([]*bool, many)
	words := make([]*string, many)
	wires, locals := make([]microproto.Attr[uint8], many), make([]microproto.Attr[uint64], 32)
	ran := make([]int, many)
	c := composite(t, microproto.Config{}, of("Many", func(b *binder) {
		for i := range many {
			events[i] = microproto.NewEvent[*int](fmt.Sprint("test.many.", i))
			cells[i] = microproto.DeclareCell(b, fmt.Sprint("number.", i), uint64(i))
			flags[i] = microproto.DeclareCell(b, fmt.Sprint("flag.", i), i%3 == 0)
			words[i] = microproto.DeclareCell(b, fmt.Sprint("text.", i), fmt.Sprint(i))
			wires[i] = microproto.WireAttr[uint8](b, fmt.Sprint("wire.", i))
			if i < len(locals) {
				locals[i] = microproto.LocalAttr[uint64](b, fmt.Sprint("local.", i))
			}
			microproto.Bind(b, events[i], 0, func(_ *exec, n *int) { ran[i] += *n })
		}
	}))
	for i := range many {
		require.Equal(t, uint64(i), *cells[i])
		require.Equal(t, i%3 == 0, *flags[i])
		require.Equal(t, fmt.Sprint(i), *words[i])
		*cells[i], *flags[i] = ^uint64(0), true // every bit of its own, none of its neighbours'
	}
	one, hundred := 1, 100
	do(t, c, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		for i := range locals {
			require.False(t, locals[i].Has(m))
			locals[i].Set(m, uint64(i)<<40+1)
		}
		for i := range wires {
			wires[i].Set(m, uint8(i))
		}
		for i := range wires {
			require.Equal(t, uint8(i), m.Header()[i])
			require.Equal(t, uint8(i), wires[i].Get(m))
			require.True(t, wires[i].Has(m))
		}
		for i := range locals {
			require.Equal(t, uint64(i)<<40+1, locals[i].Get(m))
		}
		x.Done(m)
		for i := range events {
			microproto.Raise(x, events[i], &one)
			microproto.Enqueue(x, events[i], &one)
			microproto.RaiseAfter(x, events[i], time.Second, &hundred)
		}
	})
	require.NoError(t, c.Advance(microproto.Instant(time.Second)))
	for i := range ran {
		require.Equal(t, 102, ran[i])
		require.Equal(t, ^uint64(0), *cells[i])
	}
}
