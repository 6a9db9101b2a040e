package microproto_test

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// checksum drops segments whose payload was changed on the way.
type checksum struct{ sum microproto.Attr[uint32] }

func (c *checksum) Name() string { return "Checksum" }

func (c *checksum) Attach(b *microproto.Binder) error {
	c.sum = microproto.WireAttr[uint32](b, "checksum.sum")
	microproto.Bind(b, microproto.SegmentToNet, microproto.Late, func(_ *microproto.Exec, m *microproto.Message) {
		c.sum.Set(m, crc32.ChecksumIEEE(m.Payload))
	})
	microproto.Bind(b, microproto.SegmentFromNet, microproto.First, func(x *microproto.Exec, m *microproto.Message) {
		if c.sum.Get(m) != crc32.ChecksumIEEE(m.Payload) {
			x.Drop(m, "checksum")
		}
	})
	return nil
}

// A micro-protocol between two others, at both ends of a link that flips bits.
func Example() {
	var ends [2]*microproto.Composite
	for i := range ends {
		c, err := microproto.NewComposite(microproto.Config{Name: fmt.Sprint("end", i), MTU: 500},
			mptest.Top(), &checksum{}, mptest.Bottom(nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		ends[i] = c
	}
	pair := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: time.Millisecond, Corrupt: 0.3})
	if err := pair.Open(); err != nil {
		fmt.Println(err)
		return
	}
	for range 100 {
		if err := pair.Send(0, []byte("a halo of the membrane")); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, _ = pair.Run(time.Second)
	dropped := ends[1].Counters().Drops[0]
	fmt.Println(len(pair.Received[1])+int(dropped.Count), "frames, some dropped by", dropped.Reason)
	// Output: 100 frames, some dropped by checksum
}

// A program lists a micro-protocol of its own as an optional row; a flag selects it by
// its label.
func ExampleCatalog_AddRow() {
	catalog := microproto.NewCatalog()
	err := catalog.AddRow(microproto.Row{
		Protocol: "Checksum", Label: "checksum",
		New:     func(microproto.Options) (microproto.MicroProtocol, error) { return &checksum{}, nil },
		Help:    "drops segments whose payload was changed on the way",
		Columns: microproto.Columns(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range catalog.Rows("") {
		fmt.Printf("--rows %s: %s\n", r.Label, r.Help)
	}
	_, err = catalog.Row("", "checksums")
	fmt.Println(err)
	// Output:
	// --rows checksum: drops segments whose payload was changed on the way
	// microproto: no row "checksums" in the catalog (it lists ["checksum"])
}
