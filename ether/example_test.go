package ether_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
)

// Two links exchange offers, and one sends a frame to the other. In a program the control
// channel of p2psap carries the offers.
func Example() {
	a, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	offerA, _ := a.Offer("b")
	offerB, _ := b.Offer("a")
	toB, err := a.Accept(offerB)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := b.Accept(offerA); err != nil {
		fmt.Println(err)
		return
	}

	f := a.Acquire(5)
	f.Peer = toB
	copy(f.Data, "hello")
	if _, err := a.Send([]microproto.Frame{f}); err != nil {
		fmt.Println(err)
		return
	}
	batch := make([]microproto.Frame, 8)
	n, err := b.Recv(batch)
	for i := range batch[:n] {
		fmt.Printf("%s\n", batch[i].Data)
		batch[i].Release()
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output: hello
}
