package ether_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/microproto"
)

const pulls = 6 // experiments/cables.go pulls more often, and measures

// Of two cables between two hosts one is pulled, in turn. Frames of both directions then pass over the other.
func TestPulledCables(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent %v", silent), func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			hosts := [2]*netlab.Host{lab.Host("a"), lab.Host("b")}
			var pull, plug [2]func() error
			for i := range pull {
				if silent {
					k := lab.Emulate(hosts[0], hosts[1], netlab.Emulation{})
					set := func(down bool) func() error {
						return func() error { return k.Change(netlab.Forth, netlab.Conditions{Down: down}) }
					}
					pull[i], plug[i] = set(true), set(false)
				} else {
					end, _ := lab.Join(hosts[0], hosts[1], netlab.Wire{})
					pull[i], plug[i] = end.Cut, end.Restore
				}
			}
			var links [2]*ether.Link
			events := [2]chan microproto.LinkEvent{make(chan microproto.LinkEvent, 1000), make(chan microproto.LinkEvent, 1000)}
			for i, h := range hosts {
				links[i] = on(t, h, ether.Config{})
				links[i].Watch(func(e microproto.LinkEvent) { events[i] <- e })
			}
			toB, toA := joinAcross(t, hosts[0], hosts[1], links[0], links[1])
			in := [2]*inbox{receive(links[0], 1000), receive(links[1], 1000)}
			// A frame that is lost because the cable is pulled, or is in use still, is sent again.
			exchange := func(number uint32) {
				for i, to := range []microproto.LinkAddr{toB, toA} {
					await.Until(t, func() (arrived bool) {
						f := links[i].Acquire(100)
						f.Peer = to
						fill(f, number)
						send(t, links[i], []microproto.Frame{f})
						for {
							select {
							case b := <-in[1-i].frames:
								<-in[1-i].peers
								arrived = arrived || binary.BigEndian.Uint32(b) == number
							default:
								return arrived
							}
						}
					}, "frame %d of link %d does not arrive", number, i)
				}
			}
			event := func(done func(e microproto.LinkEvent) bool) {
				for i := range events {
					for e := <-events[i]; !done(e); e = <-events[i] {
						require.NotEmpty(t, e.Route)
					}
				}
			}
			bothWork := func(e microproto.LinkEvent) bool { return strings.HasSuffix(e.Route, " works, too") }
			exchange(0)
			event(bothWork)
			for k := range pulls { // on a busy machine the links may have gone back to the other cable before
				require.NoError(t, pull[k%2]())
				event(func(e microproto.LinkEvent) bool { return strings.Contains(e.Route, " is down: ") })
				exchange(uint32(k + 1)) //nolint:gosec // small
				require.NoError(t, plug[k%2]())
				event(bothWork)
			}
		})
	}
}
