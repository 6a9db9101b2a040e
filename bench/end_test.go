package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/bench/internal/duel"
)

// Both ends of each of our transports, in this process, obey every order.
func TestEndsObey(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for kind, lines := range map[string][]string{
		kindTCP:   {"latency 8 20", "stream 65536 40 0", "stream 8 500 0", "stream 65536 32 1000000000"},
		kindOurs:  {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindAsync: {fmt.Sprintf("calls %d 5", callSizes[0]), fmt.Sprintf("calls %d 5", callSizes[1])},
	} {
		t.Run(kind, func(t *testing.T) {
			orders := strings.Join(lines, "\n") + "\n"
			said, out := io.Pipe()
			called := make(chan error, 1)
			var theirs []duel.Answer
			go func() {
				called <- serveEnd(context.Background(), kind, "127.0.0.1", "", strings.NewReader(orders), out)
				out.Close()
			}()
			in := bufio.NewReader(said)
			address, err := in.ReadString('\n')
			require.NoError(t, err)
			rest := make(chan struct{})
			go func() {
				defer close(rest)
				for d := json.NewDecoder(in); ; {
					var a duel.Answer
					if d.Decode(&a) != nil {
						return
					}
					theirs = append(theirs, a)
				}
			}()
			var mine strings.Builder
			require.NoError(t, serveEnd(context.Background(), kind, "127.0.0.1", strings.TrimSpace(address), strings.NewReader(orders), &mine))
			require.NoError(t, <-called)
			<-rest
			require.Len(t, theirs, len(lines))
			d := json.NewDecoder(strings.NewReader(mine.String()))
			for _, line := range lines {
				var a duel.Answer
				require.NoError(t, d.Decode(&a), line)
				require.Empty(t, a.Error)
				require.Positive(t, a.Least+a.Elapsed, line)
			}
		})
	}
}

func TestBoundariesAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	b := &bench{rounds: 1}
	require.NoError(t, b.boundaries(t.Context()))
	require.Len(t, b.report.Measurements, 2)
	calls, pauses := b.report.Measurements[0], b.report.Measurements[1]
	require.Positive(t, pauses.Value)
	require.Greater(t, calls.Value, pauses.Value, "the pause is part of the change")
}

func TestUnknownEndsAreRefused(t *testing.T) {
	require.ErrorContains(t, serveEnd(context.Background(), "pigeon", "127.0.0.1", "", strings.NewReader(""), io.Discard), "-end pigeon")
}

func TestTargetsOnTheBestRound(t *testing.T) {
	m := over("transport", "n", "µs", []float64{5, 3.9, 7})
	require.True(t, *m.lowAtMost(4).Met)
	require.False(t, *m.lowAtMost(3.8).Met)
	require.True(t, *m.highAtLeast(7).Met)
	require.False(t, *m.highAtLeast(7.1).Met)
}
