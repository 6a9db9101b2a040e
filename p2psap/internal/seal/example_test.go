package seal_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/seal"
)

// Two ends protect frames with keys derived from the two secrets of their session.
func Example() {
	ab, ba := seal.Secret(sha256.Sum256([]byte("a to b"))), seal.Secret(sha256.Sum256([]byte("b to a")))
	end := func(name string, out, in seal.Secret) *microproto.Composite {
		flow := &seal.Flow{}
		c, err := microproto.NewComposite(microproto.Config{Name: name, MTU: 1400},
			seal.NewAEAD(flow, out, in), seal.NewAntiReplay(flow))
		if err != nil {
			panic(err)
		}
		if err := c.Open(0); err != nil {
			panic(err)
		}
		return c
	}
	a, b := end("a", ab, ba), end("b", ba, ab)
	frame := microproto.NewBuffer([]byte("a frame of the composite above"), nil).Frame(0, 0, 30)
	if err := a.SubmitFrame(0, frame); err != nil {
		fmt.Println(err)
		return
	}
	sealed := a.Drain(nil)[0].Frame
	fmt.Println("sealed:", len(sealed.Data), "bytes")
	if err := b.Input(0, sealed.Retain()); err != nil {
		fmt.Println(err)
		return
	}
	opened := b.RecycleFrame(b.Drain(nil)[0].Message)
	fmt.Printf("opened: %s\n", opened.Data)
	_ = b.Input(0, sealed)
	fmt.Println("the same frame again:", len(b.Drain(nil)), "delivered")
	// Output:
	// sealed: 54 bytes
	// opened: a frame of the composite above
	// the same frame again: 0 delivered
}
