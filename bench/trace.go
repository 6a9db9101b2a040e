package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/trace"
)

// What a session records, by the suffix of its kind; see endpoint.traced.
const (
	tracedSuffix = "-traced"
	framesSuffix = "-traced-frames" // with 64 bytes of each frame
	stepsSuffix  = "-traced-steps"  // with every step of every composite
)

// traced removes the suffix from a kind and returns the ring that it asks for; nil: none.
func traced(kind string) (string, *trace.Ring) {
	for suffix, o := range map[string]trace.Options{
		tracedSuffix: {}, framesSuffix: {FrameBytes: 64}, stepsSuffix: {Steps: true},
	} {
		if n := len(kind) - len(suffix); n > 0 && kind[n:] == suffix {
			ring := trace.NewRing(o)
			ring.Touch()
			return kind[:n], ring
		}
	}
	return kind, nil
}

// traces measures the cost of a record, and one way trips of 8 bytes over UDP and shared memory with a trace and
// without, in turn within each round.
func traces(ctx context.Context, r *measure.Run) error {
	for _, frame := range []int{0, 64} {
		var each []float64
		for range r.Repeat(r.Rounds) {
			each = append(each, recordCost(frame))
		}
		m := measure.Over(fmt.Sprintf("a record, %d bytes of a frame kept", frame), "ns", each)
		r.Add(m.BestAtMost(30))
	}
	h := loopback()
	defer h.close()
	for _, kind := range []string{kindOurs, kindShared} {
		if err := traceTrips(ctx, r, h, kind); err != nil {
			return err
		}
	}
	return nil
}

// recordCost returns the nanoseconds of a record in a ring of the default size that has wrapped.
func recordCost(frame int) float64 {
	source := trace.Source{Ring: trace.NewRing(trace.Options{FrameBytes: frame}), Session: 1}
	data := make([]byte, 1400)
	add := func(count int) {
		for i := range count {
			p := source.Add(int64(i), trace.SegmentOut)
			p.Number, p.Count, p.Bytes = uint64(i), 1, 1400
			p.Window, p.InFlight, p.Waiting, p.Value = 1, 2, 3, 4
			source.Ring.Frame(data, nil)
		}
	}
	add(1 << 18)
	result := testing.Benchmark(func(b *testing.B) { add(b.N) })
	debug.FreeOSMemory()
	return float64(result.T.Nanoseconds()) / float64(result.N)
}

// traceTrips compares a session without a trace with the same session with each kind of trace.
func traceTrips(ctx context.Context, r *measure.Run, h hosts, kind string) error {
	e := latency("8 B", 8, 4000, 0)
	middle := e // of the same trips
	middle.value = func(l, _ twonode.Answer) float64 { return l.Median / microsecond }
	var all []*contender
	for _, suffix := range []string{"", tracedSuffix, framesSuffix, stepsSuffix} {
		p, err := ownTransport(kind+suffix, kind+suffix).open(ctx, r, h)
		if err != nil {
			return fmt.Errorf("%s: %w", kind+suffix, err)
		}
		defer p.close()
		all = append(all, &contender{
			kind: kind + suffix, name: kind + suffix, pair: p, values: make([][]float64, 2), lost: make([]int, 2),
		})
	}
	for round := range r.Repeat(r.Rounds + 1) {
		for k := range all { // the order turns, so that none always follows the same
			if c := all[(round+k)%len(all)]; c.failed == nil {
				l := c.exchange(&e, 0, round > 0)
				if round > 0 && c.failed == nil {
					c.values[1] = append(c.values[1], middle.value(l, l))
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	off := all[0]
	for i, c := range all {
		if c.failed != nil || off.failed != nil {
			r.Skip(c.name, c.failed)
			continue
		}
		m := measure.Over("one way, 8 B, "+c.name, "µs", c.values[0])
		d := measure.Over("one way, 8 B, median of a round, "+c.name, "µs", c.values[1]).AsDetail()
		if i > 0 {
			m, d = m.Against("without a trace", off.values[0]), d.Against("without a trace", off.values[1])
		}
		if c.kind == kind+tracedSuffix {
			m = m.RatioAtMost(1.02)
		}
		r.Add(m, d)
	}
	return nil
}
