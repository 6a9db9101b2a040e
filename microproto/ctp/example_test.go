package ctp_test

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
)

// A message between two peers of one cluster over Ethernet, in virtual time.
func Example() {
	rows := p2psap.TableProtocols(p2psap.Column{Mode: microproto.ModeSynchronous, Intra: true})
	var ends [2]*microproto.Composite
	for i := range ends {
		protocols, err := ctp.Catalog().Build(rows, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if ends[i], err = microproto.NewComposite(microproto.Config{Name: "end", MTU: 1400}, protocols...); err != nil {
			fmt.Println(err)
			return
		}
	}
	pair := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: time.Millisecond, Loss: 0.1})
	_ = pair.Open()
	const tag, label = 1, 42
	var transfer uint64
	_ = pair.Do(0, func(x *microproto.Exec) {
		transfer, _ = ends[0].Endpoint().Send(x, tag, label, make([]byte, 100_000))
	})
	_, _ = pair.Run(time.Second)
	dst := make([]byte, 100_000)
	_ = pair.Do(1, func(x *microproto.Exec) {
		a, err := ends[1].Endpoint().Receive(x, tag, dst, nil)
		fmt.Println("received", a.Length, "bytes with label", a.Label, err)
	})
	fmt.Println("accepted:", ends[0].Endpoint().Accepted() == transfer)
	// Output:
	// received 100000 bytes with label 42 <nil>
	// accepted: true
}

// fixed is a controller whose window is always eight segments.
type fixed struct{ unit int }

func (f *fixed) Open(s ctp.ControllerStart)                             { f.unit = s.Unit }
func (f *fixed) Acked(ctp.Progress)                                     {}
func (f *fixed) Congested(microproto.Instant, int)                      {}
func (f *fixed) Recovered(microproto.Instant, int)                      {}
func (f *fixed) TimedOut(microproto.Instant, int, bool)                 {}
func (f *fixed) Idled(microproto.Instant, time.Duration, time.Duration) {}
func (f *fixed) Underused(microproto.Instant, int)                      {}
func (f *fixed) Window() int                                            { return 8 * f.unit }
func (f *fixed) Threshold() int                                         { return 8 * f.unit }

// A congestion controller of a third party is added to the catalog; the value of a flag
// selects it and the policy composes it.
func ExampleControllerRow() {
	catalog := ctp.Catalog()
	newFixed := func(microproto.Options) (ctp.Controller, error) { return &fixed{}, nil }
	if err := catalog.AddRow(ctp.ControllerRow("fixed", "a window of eight segments", newFixed)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("--congestion:", catalog.Labels(ctp.GroupCongestion))
	row, err := catalog.Row(ctp.GroupCongestion, "fixed")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := p2psap.TablePolicy{Optional: []p2psap.OptionalRow{row}}
	c, _ := policy.Compose(p2psap.Conditions{
		Mode: microproto.ModeAsynchronous, Locality: p2psap.OtherCluster, Network: p2psap.Ethernet,
	})
	fmt.Println(c.Column, c.Protocols[3:])
	// Output:
	// --congestion: [newreno cubic fixed]
	// async inter ether [DCCPAck DCCPWindowCongestionControl TCPCongestionAvoidance fixed]
}
