package ib

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// devices returns the devices of VERBS_DEVICES: one for both ends, or two. The guest of make verbs
// names one of soft-RoCE.
func devices(t *testing.T) [2]string {
	names := strings.Split(os.Getenv("VERBS_DEVICES"), ",")
	if names[0] == "" {
		t.Skip("VERBS_DEVICES names no device: make verbs runs this in a guest")
	}
	return [2]string{names[0], names[len(names)-1]}
}

// The conformance suite of links passes over libibverbs.
func TestDeviceConform(t *testing.T) {
	on := devices(t)
	for mode, wait := range map[string]Completion{
		"segments": CompletionSpin, "messages": CompletionSpin, "one-sided": CompletionChannel,
	} {
		t.Run(fmt.Sprintf("%s %v", mode, wait), func(t *testing.T) {
			c := transferModes()[mode]
			c.Completion = wait
			c.MessageBytes /= 4 // an emulated processor needs seconds to fill a link of longer ones
			mptest.ConformLink(t, func(tb testing.TB) (a, b microproto.Link) {
				open := func(name, device string) *Link {
					c := c
					c.Name, c.Device = name, device
					l, err := Open(c)
					require.NoError(tb, err)
					return l
				}
				return open("a", on[0]), open("b", on[1])
			})
		})
	}
}
