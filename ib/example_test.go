package ib_test

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/microproto"
)

// Two links on a software fabric exchange offers, and one sends a frame of a synchronous session
// to the other. Without Fabric, Open uses the first active port of the host. In a program the
// control channel of p2psap carries the offers.
func Example() {
	fabric := ib.NewSoftwareFabric()
	open := func(name string) *ib.Link {
		if err := fabric.Add(name); err != nil {
			panic(err)
		}
		l, err := ib.Open(ib.Config{Name: name, Fabric: fabric, Device: name})
		if err != nil {
			panic(err)
		}
		return l
	}
	a, b := open("a"), open("b")
	defer a.Close()
	defer b.Close()

	offerA, err := a.Offer("b")
	if err != nil {
		panic(err)
	}
	offerB, err := b.Offer("a")
	if err != nil {
		panic(err)
	}
	toB, err := a.Accept(offerB)
	if err != nil {
		panic(err)
	}
	if _, err := b.Accept(offerA); err != nil {
		panic(err)
	}

	f := a.Acquire(5) // registered memory: Send does not copy it
	f.Peer, f.Mode = toB, microproto.ModeSynchronous
	copy(f.Data, "hello")
	if _, err := a.Send([]microproto.Frame{f}); err != nil {
		panic(err)
	}
	batch := make([]microproto.Frame, 8)
	n, err := b.Recv(batch)
	if err != nil {
		panic(err)
	}
	for i := range batch[:n] {
		fmt.Printf("%s\n", batch[i].Data)
		batch[i].Release()
	}
	// Output: hello
}

// Choose names everything that keeps a host from opening a link, with the remedies.
func ExampleContext_Choose() {
	host := ib.Context{Kernel: false, Lock: ib.LockLimit{Bytes: -1}}
	_, err := host.Choose(ib.Want{Bytes: 16 << 20})
	var missing *ib.MissingError
	if errors.As(err, &missing) {
		fmt.Println(missing.Missing[0].What)
	}
	// Output: the kernel has no RDMA: there is no /sys/class/infiniband
}
