package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
)

// An asynchronous session offers five times what the wire carries.
const (
	ageRate     = 200 * netlab.Mbit
	ageValue    = 128 << 10
	ageInterval = ageValue * time.Second / (1000 * netlab.Mbit)
	ageWarmUp   = time.Second
	ageTime     = 4 * time.Second
)

// age measures how old the halos are that an asynchronous peer reads while its neighbour offers more than the wire
// carries, in multiples of the time that one value takes on the wire; and the synchronous rate of the same wire.
func age(ctx context.Context, r *measure.Run) error {
	wire := ageValue / float64(ageRate) * 1000
	r.Add(measure.One("a value of 128 KiB on the wire", "ms", wire).AsDetail())
	for _, queue := range []struct {
		name  string
		bytes int
	}{{"125 KB", 125_000}, {"1.5 MB (1000 packets)", 1_500_000}, {"16 MB", 16_000_000}} {
		var median, worst, lost, rate []float64
		for range r.Repeat(r.Rounds) {
			m, w, l, err := ages(ctx, queue.bytes)
			if err != nil {
				return err
			}
			median, worst, lost = append(median, m), append(worst, w), append(lost, 100*l)
			share, err := synchronousShare(ctx, queue.bytes)
			if err != nil {
				return err
			}
			rate = append(rate, share)
		}
		name := fmt.Sprintf("device queue of %s: ", queue.name)
		r.Add(measure.Over(name+"median age", "ms", median).AtMost(3*wire),
			measure.Over(name+"largest age", "ms", worst).AtMost(8*wire),
			measure.Over(name+"segments lost", "%", lost).AtMost(2),
			measure.Over(name+"synchronous rate", "of the wire's", rate).AtLeast(0.97))
	}
	return nil
}

// ages returns the median and the largest age of the values in the slot at any time, in milliseconds, and the part of
// the segments that was lost.
func ages(ctx context.Context, queue int) (median, worst, lost float64, err error) {
	s := flow.Spec{Mode: microproto.ModeAsynchronous, Intra: true, Bytes: ageValue, Interval: ageInterval}
	sent, got, _, err := overWire(ctx, queue, s)
	if err != nil {
		return 0, 0, 0, err
	}
	var sampled []float64
	for i := 1; i < len(got.Reads); i++ {
		last, next := got.Reads[i-1], got.Reads[i]
		if last.At < got.Reads[0].At+int64(ageWarmUp) {
			continue
		}
		for at := last.At; at < next.At; at += int64(100 * time.Microsecond) {
			sampled = append(sampled, float64(at-last.Oldest)/1e6)
		}
		sampled = append(sampled, float64(next.At-last.Oldest)/1e6)
	}
	if len(sampled) == 0 {
		return 0, 0, 0, fmt.Errorf("age: no value arrived within %v", ageTime)
	}
	slices.Sort(sampled)
	lost = 1 - float64(got.Session.SegmentsReceived)/float64(sent.Session.SegmentsSent-sent.Session.Replaced)
	return sampled[len(sampled)/2], sampled[len(sampled)-1], lost, nil
}

// synchronousShare returns the rate of a synchronous session as a part of what full packets carry over the wire.
func synchronousShare(ctx context.Context, queue int) (float64, error) {
	s := flow.Spec{Mode: microproto.ModeSynchronous, Intra: true, Bytes: 64 << 10}
	_, got, rate, err := overWire(ctx, queue, s)
	const packet = 1500 + 14 // with the Ethernet header, which the wire's rate includes
	return rate / ageRate * packet / float64(got.Session.SegmentSize), err
}

// overWire runs a flow over a wire with a device queue of that many bytes, and returns the counts of both ends and the
// bytes received per second.
func overWire(ctx context.Context, queue int, s flow.Spec) (sent, got flow.Counts, rate float64, err error) {
	err = measure.InLab(func(r netlab.Reporter) error {
		l := netlab.New(r)
		a, b := l.Join(l.Host("a"), l.Host("b"), netlab.Wire{Rate: ageRate, Queue: queue})
		f, err := flow.Start(a, b, s)
		if err != nil {
			return err
		}
		defer func() { _, _, _ = f.Stop() }() // after an error
		if err := f.Bulk(); err != nil {
			return err
		}
		begin := flow.Now()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(ageWarmUp + ageTime):
		}
		rate = f.Goodput(begin+int64(ageWarmUp), begin+int64(ageWarmUp+ageTime))
		sent, got, err = f.Stop()
		return err
	})
	return sent, got, rate, err
}
