//go:build linux

package stream_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/stream"
)

// Two links exchange offers, and one sends a frame to the other over a TCP connection. In a program the control
// channel of p2psap carries the offers.
func Example() {
	var links [2]*stream.Link
	for i, name := range []string{"a", "b"} {
		l, err := stream.Open(stream.Config{Name: name, Listen: "127.0.0.1"})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer l.Close()
		links[i] = l
	}
	a, b := links[0], links[1]
	offerA, _ := a.Offer("b")
	offerB, _ := b.Offer("a")
	toB, err := a.Accept(offerB)
	if err == nil {
		_, err = b.Accept(offerA)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	f := a.Acquire(5)
	f.Peer = toB
	copy(f.Data, "hello")
	if _, err := a.Send([]microproto.Frame{f}); err != nil { // it waits until the ends have met
		fmt.Println(err)
		return
	}
	batch := make([]microproto.Frame, 8)
	for n := 0; n == 0; {
		if n, err = b.Recv(batch); err != nil {
			fmt.Println(err)
			return
		}
		for i := range batch[:n] {
			fmt.Printf("%s\n", batch[i].Data)
			batch[i].Release()
		}
	}
	// Output: hello
}
