package ether_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

func TestConform(t *testing.T) {
	for _, c := range []ether.Config{
		{Listen: "127.0.0.1"},
		{Listen: "::1"},
		{},
		{Listen: "127.0.0.1", MTU: 1280},
		{Listen: "127.0.0.1", MTU: 1500, DisableGSO: true},
		{Listen: "127.0.0.1", MTU: 1500, DisableGRO: true},
		{Listen: "127.0.0.1", MTU: 9000, DisableBatch: true},
	} {
		name := fmt.Sprintf("%s mtu=%d gso=%t gro=%t batch=%t",
			c.Listen, c.MTU, !c.DisableGSO, !c.DisableGRO, !c.DisableBatch)
		t.Run(name, func(t *testing.T) {
			if c.Listen == "::1" {
				needIPv6(t)
			}
			t.Parallel() // the suite waits for silence
			mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) { return open(tb, c), open(tb, c) })
		})
	}
}
