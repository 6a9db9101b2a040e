package driver_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// newNode starts a node on the loopback interface.
func newNode(name string) *driver.Node {
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		panic(err)
	}
	n, err := driver.New(driver.Config{
		Name: name, Run: "example", Plain: true, Listen: "127.0.0.1:0",
		Rails: []driver.Rail{{Link: link}}, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
	})
	if err != nil {
		panic(err)
	}
	return n
}

// Two peers exchange a message, change the session to asynchronous communication and exchange a value.
func Example() {
	ctx := context.Background()
	a, b := newNode("a"), newNode("b")
	defer func() { _, _ = a.Close(), b.Close() }()
	if err := a.Connect(ctx, "b", b.ControlAddr().String()); err != nil {
		panic(err)
	}
	if err := b.Connect(ctx, "a", ""); err != nil {
		panic(err)
	}
	var both sync.WaitGroup
	both.Go(func() { receiver(ctx, b) })
	o := p2psap.OpenOptions{
		Name: "halo", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 8}},
	}
	s, err := a.Open(ctx, "b", o)
	if err != nil {
		panic(err)
	}
	transfer, _ := s.Send(ctx, 1, 1, []byte("message."))
	for ready := (p2psap.Ready{}); err == nil && !ready.Accepted; {
		ready, err = s.Wait(ctx, transfer) // the buffer is the session's until then
	}
	if err := s.Adapt(ctx, microproto.ModeAsynchronous); err != nil {
		panic(err)
	}
	_, err = s.Send(ctx, 1, 2, []byte("a value."))
	both.Wait()
	fmt.Println(err, s.Info().Changes, "change of composition")
	// Output:
	// received "message." with label 1
	// received "a value." with label 2
	// <nil> 1 change of composition
}

func receiver(ctx context.Context, n *driver.Node) {
	s, err := n.Open(ctx, "a", p2psap.OpenOptions{
		Name: "halo", Mode: microproto.ModeSynchronous, Slots: []p2psap.SlotSpec{{Tag: 1, Length: 8}},
	})
	if err != nil {
		panic(err)
	}
	slot := p2psap.Slot{Tag: 1, Data: make([]byte, 8)}
	arrival, _ := s.Receive(ctx, &slot) // synchronous: blocks
	fmt.Printf("received %q with label %d\n", slot.Data, arrival.Label)
	if err := s.Adapt(ctx, microproto.ModeAsynchronous); err != nil {
		panic(err)
	}
	for fresh := false; err == nil && !fresh; {
		if _, err = s.Wait(ctx, 0); err == nil {
			arrival, fresh, err = s.Poll(&slot) // asynchronous: the newest value, if there is a newer one
		}
	}
	fmt.Printf("received %q with label %d\n", slot.Data, arrival.Label)
}
