package seal

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// Both micro-protocols, one by one and in trains, over a link with all faults, and over a link
// without faults, which must deliver every message once.
func TestConformance(t *testing.T) {
	for _, name := range []string{"AEAD", "AntiReplay"} {
		for _, faults := range []*mptest.Faults{nil, {Delay: 200 * time.Microsecond}} {
			t.Run(name, func(t *testing.T) {
				mptest.Conform(t, mptest.Subject{
					Protocol: name, Tail: TagBytes, Faults: faults, Reliable: faults != nil,
					New: func(end int) []microproto.MicroProtocol {
						f, s := &Flow{}, [2]Secret{secret("a to b"), secret("b to a")}
						return []microproto.MicroProtocol{&mark{}, NewAEAD(f, s[end], s[1-end]), NewAntiReplay(f)}
					},
				})
			})
		}
	}
}
