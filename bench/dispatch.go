package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// A line of go test -bench: time and allocations of one operation.
const benchLine = `(?m)^BenchmarkDispatchFive\S*\s+\d+\s+([\d.]+) ns/op\s+\d+ B/op\s+(\d+) allocs/op`

// dispatch runs the micro-protocol kernel's own benchmark, once per round.
func dispatch(ctx context.Context, b *bench) error {
	line := regexp.MustCompile(benchLine)
	out, err := b.command(ctx, nil, "go", "test", "-run", "^$", "-bench", "^BenchmarkDispatchFive$", "-benchmem",
		"-benchtime", "200ms", "-count", strconv.Itoa(b.rounds), "./microproto")
	if err != nil {
		return err
	}
	var ns, allocs []float64
	for _, m := range line.FindAllSubmatch(out, -1) {
		t, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return err
		}
		a, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return err
		}
		ns, allocs = append(ns, t), append(allocs, a)
	}
	if len(ns) == 0 {
		return fmt.Errorf("go test printed no BenchmarkDispatchFive: %.200s", out)
	}
	b.report.add(over("dispatch", "five handlers, each writing its header", "ns", ns).atMost(40),
		over("dispatch", "allocations", "per raise", allocs).atMost(0))
	return nil
}
