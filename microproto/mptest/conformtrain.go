package mptest

import (
	"reflect"

	"github.com/p2pdc/p2pdc/microproto"
)

const (
	// trainBytes is Caps.Train in the suite.
	trainBytes = 65507
	// mostTrain bounds the segments of a train that the suite sends without an Endpoint.
	mostTrain = 8
)

// takesTrains reports whether all micro-protocols of an end take trains.
func (s *Subject) takesTrains() bool {
	c, err := microproto.NewComposite(microproto.Config{Name: "trains", MTU: s.Config.MTU, Train: trainBytes},
		s.New(0)...)
	return err == nil && c.FormsTrains()
}

// most returns the largest number of segments of a message without an Endpoint.
func (s *Subject) most() int {
	if s.Config.Train > 0 {
		return mostTrain
	}
	return 1
}

// sendBelow sends the next message, or several as a train, to a composite without an Endpoint.
func (b *bench) sendBelow(end int) error {
	l := b.load[end]
	n := 1 + l.rand.IntN(min(b.s.Length, b.ends[end].MaxPayload()-b.s.Tail))
	last, count := n, 1
	if b.s.Config.Train > 0 {
		last, count = 1+l.rand.IntN(n), 1+l.rand.IntN(min(mostTrain, l.left))
	}
	data := l.bytes((count-1)*n + last)
	var err error
	if count == 1 {
		err = b.pair.Send(end, data)
	} else {
		f := microproto.NewBuffer(data, nil).Frame(0, 0, len(data))
		f.Segment = n
		err = b.pair.SendFrame(end, f)
	}
	if err != nil {
		l.refused++
		return err
	}
	for i := range count {
		l.sent = append(l.sent, data[i*n:min(i*n+n, len(data))])
	}
	l.left -= count
	return nil
}

// trains plays the load twice without faults: with the trains as they are sent, and divided into
// their segments. The deliveries must be equal.
func (s *Subject) trains(t failer) {
	var got [2][2][][]byte
	for k := range 2 {
		b := s.bench(t, 11, Faults{})
		count := 0
		b.pair.OnFrame = func(end int, f microproto.Frame) bool {
			if f.Count() > 1 {
				count++
			}
			arrive := func(f microproto.Frame) {
				b.pair.Clock.At(b.pair.Clock.Now().Add(s.Faults.Delay),
					func() { b.pair.fail(b.ends[1-end].Input(b.pair.Clock.Now(), f)) })
			}
			if f = f.Retain(); k == 0 {
				arrive(f)
			} else {
				f.Pieces(arrive)
			}
			return false
		}
		noError(t, b.run(s.Quiet), "run")
		must(t, count > 0, "no train was formed")
		got[k] = [2][][]byte{b.load[0].got, b.load[1].got}
		b.close(t)
	}
	must(t, reflect.DeepEqual(got[0], got[1]), "a train led to other deliveries than its segments")
}
