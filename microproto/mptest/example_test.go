package mptest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// Two composites joined by a link that loses frames: the same seed loses the same ones.
func ExampleNewPair() {
	lost := func(seed uint64) uint64 {
		var ends [2]*microproto.Composite
		for i := range ends {
			c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 100}, mptest.Top(),
				mptest.Bottom(nil))
			if err != nil {
				panic(err)
			}
			ends[i] = c
		}
		pair := mptest.NewPair(ends[0], ends[1], seed, mptest.Faults{Delay: time.Millisecond, Loss: 0.5})
		_ = pair.Open()
		for range 1000 {
			_ = pair.Send(0, []byte("x"))
		}
		_, _ = pair.Run(time.Second)
		return pair.Link.Stats(0).Lost
	}
	first, again, other := lost(1), lost(1), lost(2)
	fmt.Println(first == again, first == other)
	// Output: true false
}

// The conformance suite of one micro-protocol, as a test of its package calls it.
func ExampleConform() {
	_ = func(t *testing.T) {
		mptest.Conform(t, mptest.Subject{
			Protocol: "Retransmit", Reliable: true,
			New: func(int) []microproto.MicroProtocol {
				mps, err := ctp.Catalog().Build([]string{
					"TransportDriver", "Resize", "Synchronous", "SequencedSegment", "PositiveAck",
					"Retransmit", "RTTEstimation", "ReliableFIFO",
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return mps
			},
		})
	}
}
