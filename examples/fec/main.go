// Fec is a micro-protocol of a third party: forward error correction, in fec.go. The program sends
// values over a link that loses frames, without it and with it, in virtual time. It uses public
// packages only; copy fec.go into a module of your own.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	plain := []string{"TransportDriver", "Resize", "Asynchronous"}
	fmt.Fprintf(w, "%-8s  %6s  %8s  %6s\n", "loss", "sent", "missing", "with FEC")
	for _, loss := range []float64{0.01, 0.05, 0.1} {
		sent, without, err := missing(plain, loss)
		if err != nil {
			return err
		}
		_, with, err := missing(append(plain, "FEC"), loss)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-8.2f  %6d  %8d  %6d\n", loss, sent, without, with)
	}
	return nil
}

const (
	tag    = 1
	values = 2000
	length = 4096 // bytes of a value: three segments
)

// missing sends values and counts the segments that did not arrive.
func missing(protocols []string, loss float64) (sent, missing uint64, err error) {
	catalog := ctp.Catalog()
	if err := catalog.Add("FEC", New); err != nil {
		return 0, 0, err
	}
	var ends [2]*microproto.Composite
	for i := range ends {
		mps, err := catalog.Build(protocols, nil)
		if err != nil {
			return 0, 0, err
		}
		ends[i], err = microproto.NewComposite(microproto.Config{Name: fmt.Sprint("end ", i), MTU: 1400}, mps...)
		if err != nil {
			return 0, 0, err
		}
		if err := ends[i].Endpoint().Slot(tag, length); err != nil {
			return 0, 0, err
		}
	}
	pair := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: 5 * time.Millisecond, Loss: loss})
	if err := pair.Open(); err != nil {
		return 0, 0, err
	}
	value := make([]byte, length)
	segments := uint64((length + ends[0].MaxPayload()&^7 - 1) / (ends[0].MaxPayload() &^ 7))
	for label := range uint64(values) {
		var failed error
		err := pair.Do(0, func(x *microproto.Exec) { _, failed = ends[0].Endpoint().Send(x, tag, label+1, value) })
		if err != nil || failed != nil {
			return 0, 0, fmt.Errorf("value %d: %w, %w", label, err, failed)
		}
		if _, err := pair.Run(10 * time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
	sent = values * segments
	return sent, sent - ends[1].Endpoint().Arrivals(), pair.Close()
}
