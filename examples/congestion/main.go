// Congestion is a congestion controller of a third party: TCP Vegas, in vegas.go. The program sends
// 8 MB through a bottleneck of 1 MB/s with a deep queue, with the controller of Table I and with
// Vegas, in virtual time, and prints the length of the queue. It uses public packages only; copy
// vegas.go into a module of your own.
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

// reliable is the synchronous column between clusters over Ethernet of Table I.
func reliable() []string {
	return []string{
		"TransportDriver", "Resize", "Synchronous", "SequencedSegment", "PositiveAck", "Retransmit", "RTTEstimation",
		"ReliableFIFO", "DuplicateAck", "WindowCongestionControl", "TCPNewRenoCongestionAvoidance",
	}
}

func run(w io.Writer) error {
	fmt.Fprintf(w, "%-32s  %8s  %8s  %s\n", "controller", "seconds", "queue", "frames lost")
	for _, extra := range [][]string{nil, {"Vegas"}} {
		protocols := append(reliable(), extra...)
		r, err := transfer(protocols, 8<<20)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-32s  %8.2f  %8.1f  %d\n", protocols[len(protocols)-1], r.took.Seconds(), r.queue, r.lost)
	}
	return nil
}

const (
	mtu   = 1400
	rate  = 1e6                   // bytes per second
	delay = 10 * time.Millisecond // one way: 15 frames are in flight without a queue
	room  = 120                   // frames in flight and in the queue
	tag   = 1
	slot  = 128 << 10 // bytes of a message
)

type outcome struct {
	took  time.Duration
	queue float64 // mean length in frames
	lost  uint64
}

// catalog returns the catalog of package ctp with Vegas.
func catalog() (*microproto.Catalog, error) {
	c := ctp.Catalog()
	return c, c.AddRow(ctp.ControllerRow("Vegas", "TCP Vegas: keeps queues short", NewVegas))
}

// transfer sends bytes in messages from end 0 to end 1.
func transfer(protocols []string, bytes int) (r outcome, err error) {
	c, err := catalog()
	if err != nil {
		return r, err
	}
	var ends [2]*microproto.Composite
	for i := range ends {
		mps, err := c.Build(protocols, microproto.Options{ctp.OptionRTOFloor: int64(200 * time.Millisecond)})
		if err != nil {
			return r, err
		}
		ends[i], err = microproto.NewComposite(microproto.Config{Name: fmt.Sprint("end ", i), MTU: mtu}, mps...)
		if err != nil {
			return r, err
		}
	}
	pair := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: delay, Rate: rate, Capacity: room})
	if err := pair.Open(); err != nil {
		return r, err
	}
	message, got := make([]byte, slot), 0
	var inQueue, looks float64
	for sent := 0; got < bytes; {
		for sent < bytes && sent-got < 1<<20 {
			var busy error
			if err := pair.Do(0, func(x *microproto.Exec) {
				_, busy = ends[0].Endpoint().Send(x, tag, 0, message)
			}); err != nil {
				return r, err
			}
			if busy != nil {
				break
			}
			sent += slot
		}
		if _, err := pair.Run(time.Millisecond); err != nil {
			return r, err
		}
		for {
			var none error
			dst := make([]byte, slot)
			if err := pair.Do(1, func(x *microproto.Exec) {
				_, none = ends[1].Endpoint().Receive(x, tag, dst, nil)
			}); err != nil {
				return r, err
			}
			if none != nil {
				break
			}
			got += slot
		}
		looks++
		// Acknowledgements are few and short. Frames beyond those in flight are in the queue.
		inQueue += max(0, float64(pair.Link.InFlight())-2*delay.Seconds()*rate/mtu)
	}
	r = outcome{time.Duration(pair.Clock.Now()), inQueue / looks, pair.Link.Stats(0).Overflowed}
	return r, pair.Close()
}
