package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// Lines of go test -bench: time and allocations of one operation; time of a segment and
// how many went as one.
const (
	benchLine   = `(?m)^BenchmarkDispatchFive\S*\s+\d+\s+([\d.]+) ns/op\s+\d+ B/op\s+(\d+) allocs/op`
	segmentLine = `(?m)^BenchmarkSegment/inter/(single|train)/8B\S*\s+\d+\s+[\d.]+ ns/op\s+([\d.]+) ns/segment\s+([\d.]+) segments/train\s+\d+ B/op\s+(\d+) allocs/op`
)

// numbers parses what an expression found in one line, the whole line left out.
func numbers(found [][]byte) (out []float64, err error) {
	for _, f := range found[1:] {
		v, err := strconv.ParseFloat(string(f), 64)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// dispatch runs the micro-protocol kernel's own benchmark, and that of the reliable
// column between clusters, once per round.
func dispatch(ctx context.Context, b *bench) error {
	line := regexp.MustCompile(benchLine)
	out, err := b.command(ctx, nil, "go", "test", "-run", "^$", "-bench", "^BenchmarkDispatchFive$", "-benchmem",
		"-benchtime", "200ms", "-count", strconv.Itoa(b.rounds), "./microproto")
	if err != nil {
		return err
	}
	var ns, allocs []float64
	for _, m := range line.FindAllSubmatch(out, -1) {
		v, err := numbers(m)
		if err != nil {
			return err
		}
		ns, allocs = append(ns, v[0]), append(allocs, v[1])
	}
	if len(ns) == 0 {
		return fmt.Errorf("go test printed no BenchmarkDispatchFive: %.200s", out)
	}
	b.report.add(over("dispatch", "five handlers, each writing its header", "ns", ns).atMost(40),
		over("dispatch", "allocations", "per raise", allocs).atMost(0))
	return b.segments(ctx)
}

// segments is what the eleven handlers of the reliable column between clusters take of a
// segment, at both ends and with its share of the acknowledgement, no link counted: in
// trains, as over a link that takes them and an open window, and one by one.
func (b *bench) segments(ctx context.Context) error {
	out, err := b.command(ctx, nil, "go", "test", "-run", "^$", "-bench", "^BenchmarkSegment$/^inter$/^(single|train)$/^8B$", "-benchmem",
		"-benchtime", "200ms", "-count", strconv.Itoa(b.rounds), "./microproto/ctp")
	if err != nil {
		return err
	}
	took, lengths, allocs := map[string][]float64{}, 0.0, []float64(nil)
	for _, m := range regexp.MustCompile(segmentLine).FindAllSubmatch(out, -1) {
		v, err := numbers(m[1:])
		if err != nil {
			return err
		}
		kind := string(m[1])
		took[kind], allocs = append(took[kind], v[0]), append(allocs, v[2])
		lengths = max(lengths, v[1])
	}
	if len(took["single"]) == 0 || len(took["train"]) == 0 {
		return fmt.Errorf("go test printed no BenchmarkSegment: %.200s", out)
	}
	b.report.add(
		over("dispatch", fmt.Sprintf("a segment of the inter-cluster column, both ends, in trains of %.0f", lengths), "ns", took["train"]).atMost(segmentMost),
		over("dispatch", "the same, in trains: measured / target", "ratio", scaled(took["train"], 1.0/segmentMost)),
		over("dispatch", "the same, segments one by one", "ns", took["single"]).atMost(segmentMost),
		over("dispatch", "the same, one by one: measured / target", "ratio", scaled(took["single"], 1.0/segmentMost)),
		over("dispatch", "allocations of a message of 64 segments", "per message", allocs).atMost(0))
	return nil
}

// segmentMost is the target, in nanoseconds.
const segmentMost = 300
