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
	for way, c := range ways() {
		for _, wait := range []Completion{CompletionSpin, CompletionChannel, CompletionPolling} {
			for _, layer := range []verbs.LinkLayer{verbs.LayerInfiniBand, verbs.LayerEthernet} {
				if layer == verbs.LayerEthernet && wait != CompletionSpin {
					continue
				}
				t.Run(fmt.Sprintf("%s %v %v", way, wait, layer), func(t *testing.T) {
					t.Parallel() // the suite waits for silence
					c.Completion = wait
					mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) {
						f := newFabric(software.Config{Layer: layer})
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
	}
}
