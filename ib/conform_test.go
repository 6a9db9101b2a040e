package ib

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

func TestConform(t *testing.T) {
	for _, x := range []struct {
		mode  string
		wait  Completion
		layer verbs.LinkLayer
	}{
		{"segments", CompletionSpin, verbs.LayerInfiniBand},
		{"segments", CompletionChannel, verbs.LayerEthernet},
		{"messages", CompletionPolling, verbs.LayerInfiniBand},
		{"one-sided", CompletionSpin, verbs.LayerEthernet},
		{"both", CompletionChannel, verbs.LayerInfiniBand},
	} {
		if testing.Short() && x.mode == "segments" {
			continue // with both modes there are segments, too
		}
		c := transferModes()[x.mode]
		c.Completion = x.wait
		t.Run(fmt.Sprintf("%s %v %v", x.mode, x.wait, x.layer), func(t *testing.T) {
			t.Parallel() // the suite waits for absence of frames
			mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) {
				f := newFabric(software.Config{Layer: x.layer})
				open := func(name string) *Link {
					c := c
					c.Name, c.Device, c.Fabric = name, name, f
					require.NoError(tb, f.Add(name))
					l, err := Open(c)
					require.NoError(tb, err)
					return l
				}
				return open("a"), open("b")
			})
		})
	}
}
