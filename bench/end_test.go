package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
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
		kindFloor: {"latency 8 20", fmt.Sprintf("calls %d 5", callSizes[0])},
		kindOurs:  {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindAsync: {fmt.Sprintf("calls %d 5", callSizes[0]), fmt.Sprintf("calls %d 5", callSizes[1])},
	} {
		t.Run(kind, func(t *testing.T) {
			var answered sync.WaitGroup // both ends stay until both have done everything
			answered.Add(2)
			orders := func() io.Reader {
				return io.MultiReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), after{&answered})
			}
			said, out := io.Pipe()
			called := make(chan error, 1)
			go func() {
				called <- serveEnd(context.Background(), kind, "127.0.0.1", "", orders(), out)
				out.Close()
			}()
			in := bufio.NewReader(said)
			address, err := in.ReadString('\n')
			require.NoError(t, err)
			read := func(r io.Reader) <-chan []duel.Answer {
				all := make(chan []duel.Answer, 1)
				go func() {
					defer answered.Done()
					var got []duel.Answer
					for d := json.NewDecoder(r); len(got) < len(lines); {
						var a duel.Answer
						if d.Decode(&a) != nil {
							break
						}
						got = append(got, a)
					}
					all <- got
				}()
				return all
			}
			theirs := read(in)
			tells, mine := io.Pipe()
			ours := read(tells)
			require.NoError(t, serveEnd(context.Background(), kind, "127.0.0.1", strings.TrimSpace(address), orders(), mine))
			mine.Close()
			require.NoError(t, <-called)
			require.Len(t, <-theirs, len(lines))
			answers := <-ours
			require.Len(t, answers, len(lines))
			for i, line := range lines {
				require.Empty(t, answers[i].Error)
				require.Positive(t, answers[i].Least+answers[i].Elapsed, line)
			}
		})
	}
}

// after ends, empty, when everyone has answered.
type after struct{ answered *sync.WaitGroup }

func (a after) Read([]byte) (int, error) {
	a.answered.Wait()
	return 0, io.EOF
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
