package p2psap_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Two nodes in virtual time: their control messages and frames are passed from one to the other at once.
func ExampleNode() {
	var free []*microproto.Buffer
	newNode := func(name string) *p2psap.Node {
		n, err := p2psap.NewNode(p2psap.NodeConfig{
			Name: name, Run: "example", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
			Rails: []p2psap.Rail{{Network: p2psap.Ethernet, Link: memoryLink{&free}}}, Seed: 1,
		})
		if err != nil {
			panic(err)
		}
		return n
	}
	nodes := []*p2psap.Node{newNode("a"), newNode("b")}
	a, b := nodes[0], nodes[1]
	now := microproto.Instant(1)
	settle := func() {
		for range 10 {
			for i, n := range nodes {
				other := nodes[1-i]
				frames := n.Frames(0)
				for _, f := range frames {
					f.Peer = 1
					other.Input(now, 0, f)
				}
				n.Sent(0, len(frames))
				for _, o := range n.Drain(nil) {
					switch o.Kind {
					case p2psap.OutDial: // the connection has number 1 at both ends
						other.ControlUp(now, 1, "")
						n.ControlUp(now, 1, o.Peer)
					case p2psap.OutControl:
						other.Control(now, o.Conn, o.Data)
					}
				}
			}
		}
	}
	_ = b.Connect(now, "a", "the address of a")
	settle()
	o := p2psap.OpenOptions{
		Name: "halo", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 64}},
	}
	sender, _ := a.Open(now, "b", o)
	receiver, _ := b.Open(now, "a", o)
	settle()
	state, _ := a.State(sender)
	info, _ := a.Info(sender)
	fmt.Println(state, info.Conditions.Locality, info.Composition[2:4])

	transfer, err := a.Send(now, sender, 1, 42, []byte("a halo"))
	settle()
	slot := p2psap.Slot{Tag: 1, Data: make([]byte, 64)}
	arrival, _ := b.Receive(now, receiver, &slot)
	fmt.Printf("%s, label %d, %v\n", slot.Data[:arrival.Length], arrival.Label, err)
	now = max(a.Deadline(), b.Deadline()) // an acknowledgement may be delayed
	b.Advance(now)
	settle()
	fmt.Println("accepted:", a.Accepted(sender) == transfer)
	// Output:
	// open same cluster [Synchronous SequencedSegment]
	// a halo, label 42, <nil>
	// accepted: true
}

// The policy composes a channel for its conditions.
func ExampleTablePolicy() {
	c, err := p2psap.TablePolicy{}.Compose(p2psap.Conditions{
		Mode: microproto.ModeAsynchronous, Locality: p2psap.OtherCluster, Network: p2psap.Ethernet,
	})
	fmt.Println(c.Column, err)
	fmt.Println(c.Protocols)
	// Output:
	// async inter ether <nil>
	// [TransportDriver Resize Asynchronous DCCPAck DCCPWindowCongestionControl TCPCongestionAvoidance]
}
