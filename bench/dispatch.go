package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// segmentTarget is the most that a segment should take, in nanoseconds.
const segmentTarget = 300

// Lines of a test binary's benchmarks: time and allocations of one operation; of segments also how
// many went as one train.
var (
	dispatchLine = regexp.MustCompile(`(?m)^BenchmarkDispatchFive\S*\s+\d+\s+([\d.]+) ns/op\s+` +
		`\d+ B/op\s+(\d+) allocs/op`)
	segmentLine = regexp.MustCompile(`(?m)^BenchmarkSegment/inter/(?:single|train)/8B\S*\s+\d+\s+[\d.]+ ns/op\s+` +
		`([\d.]+) ns/segment\s+([\d.]+) segments/train\s+\d+ B/op\s+(\d+) allocs/op`)
)

// Benchmarks of packages microproto and microproto/ctp.
var (
	dispatchBenchmark = benchmark{"microproto", "^BenchmarkDispatchFive$", dispatchLine}
	trainBenchmark    = benchmark{"microproto/ctp", "^BenchmarkSegment$/^inter$/^train$/^8B$", segmentLine}
	singleBenchmark   = benchmark{"microproto/ctp", "^BenchmarkSegment$/^inter$/^single$/^8B$", segmentLine}
)

// benchmark is a benchmark of a package, and the expression whose groups are the numbers of a line
// of its output.
type benchmark struct {
	pkg, name string
	line      *regexp.Regexp
}

// program is the test binary of the benchmark's package.
func (b *benchmark) program(r *measure.Run) string {
	return filepath.Join(r.Temp, filepath.Base(b.pkg)+".test")
}

// build compiles the test binary.
func (b *benchmark) build(ctx context.Context, r *measure.Run) error {
	_, err := r.Command(ctx, nil, "go", "test", "-c", "-o", b.program(r), "./"+b.pkg)
	return err
}

// run runs the benchmark so many times and returns its numbers: by group, then by time.
func (b *benchmark) run(ctx context.Context, r *measure.Run, count int) ([][]float64, error) {
	out, err := r.Command(ctx, nil, b.program(r), "-test.run", "^$", "-test.bench", b.name, "-test.benchmem",
		"-test.benchtime", "200ms", "-test.count", strconv.Itoa(count))
	if err != nil {
		return nil, err
	}
	found := b.line.FindAllSubmatch(out, -1)
	if len(found) != count {
		return nil, fmt.Errorf("%s %s: %d results, want %d: %.200s", b.pkg, b.name, len(found), count, out)
	}
	numbers := make([][]float64, b.line.NumSubexp())
	for _, m := range found {
		for i := range numbers {
			v, err := strconv.ParseFloat(string(m[i+1]), 64)
			if err != nil {
				return nil, err
			}
			numbers[i] = append(numbers[i], v)
		}
	}
	return numbers, nil
}

// dispatch runs the benchmark of the micro-protocol kernel, and that of the eleven handlers of the
// reliable column between clusters: both ends of a segment and its share of the acknowledgement,
// without a link.
func dispatch(ctx context.Context, r *measure.Run) error {
	var numbers [3][][]float64
	for i, b := range []benchmark{dispatchBenchmark, trainBenchmark, singleBenchmark} {
		err := b.build(ctx, r)
		if err == nil {
			numbers[i], err = b.run(ctx, r, r.Rounds)
		}
		if err != nil {
			return err
		}
	}
	five, train, single := numbers[0], numbers[1], numbers[2]
	r.Add(measure.Over("five handlers, each writing its header", "ns", five[0]).AtMost(40),
		measure.Over("allocations", "per raise", five[1]).AtMost(0),
		measure.Over(fmt.Sprintf("a segment between clusters, both ends, in trains of %.0f", train[1][0]), "ns",
			train[0]).AtMost(segmentTarget).Against("one by one", single[0]),
		measure.Over("the same, segments one by one", "ns", single[0]).AtMost(segmentTarget),
		measure.Over("allocations of a message of 64 segments", "per message", train[2]).AtMost(0))
	return nil
}
