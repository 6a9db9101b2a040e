package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBenchmarkLinesAreParsed(t *testing.T) {
	m := dispatchLine.FindStringSubmatch("goos: linux\n" +
		"BenchmarkDispatchFive-2   \t 7539854\t        31.85 ns/op\t       0 B/op\t       0 allocs/op\nPASS\n")
	require.Equal(t, []string{"31.85", "0"}, m[1:])
	m = segmentLine.FindStringSubmatch("BenchmarkSegment/inter/train/8B-2   \t 2000\t" +
		"  3456 ns/op\t  54.0 ns/segment\t  64.00 segments/train\t  0 B/op\t  0 allocs/op\n")
	require.Equal(t, []string{"54.0", "64.00", "0"}, m[1:])
}
