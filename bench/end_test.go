package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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
		t.Run(kind, func(t *testing.T) { serveBoth(t, kind, lines, func(address string) string { return address }) })
	}
}

// serveBoth has both ends of a transport obey orders, in this process; by is the address at which
// the one that calls reaches the other one's.
func serveBoth(t *testing.T, kind string, lines []string, by func(address string) string) (leader, other []duel.Answer) {
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
	require.NoError(t, serveEnd(context.Background(), kind, "127.0.0.1", by(strings.TrimSpace(address)), orders(), mine))
	mine.Close()
	require.NoError(t, <-called)
	other = <-theirs
	require.Len(t, other, len(lines))
	leader = <-ours
	require.Len(t, leader, len(lines))
	for i, line := range lines {
		require.Empty(t, leader[i].Error)
		require.Positive(t, leader[i].Least+leader[i].Elapsed, line)
	}
	return leader, other
}

// losing forwards datagrams between a caller and address, and loses those that lose tells
// by their count in their direction (0: from the caller). It returns where the caller reaches it.
func losing(t *testing.T, address string, lose func(direction, count int) bool) string {
	there, err := net.ResolveUDPAddr("udp4", address)
	require.NoError(t, err)
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	back, err := net.DialUDP("udp4", nil, there)
	require.NoError(t, err)
	var caller atomic.Pointer[net.UDPAddr]
	forward := func(direction int, read func([]byte) (int, error), write func([]byte) error) {
		buf := make([]byte, 2048)
		for count := 0; ; count++ {
			n, err := read(buf)
			if err != nil {
				return
			}
			if !lose(direction, count) {
				_ = write(buf[:n])
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		forward(0, func(b []byte) (int, error) {
			n, from, err := front.ReadFromUDP(b)
			caller.Store(from)
			return n, err
		}, func(b []byte) error { _, err := back.Write(b); return err })
	})
	running.Go(func() {
		forward(1, back.Read, func(b []byte) error { _, err := front.WriteToUDP(b, caller.Load()); return err })
	})
	t.Cleanup(func() {
		front.Close()
		back.Close()
		running.Wait()
	})
	return front.LocalAddr().String()
}

// Plain datagrams that get lost, the first and the last ones too, are counted, and end nothing.
func TestLostDatagramsAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for name, lose := range map[string]func(direction, count int) bool{
		"some":         func(direction, count int) bool { return count%(7+2*direction) == 0 },
		"many":         func(direction, count int) bool { return count%(3+direction) == 1 },
		"calls' last":  func(direction, count int) bool { return direction == 0 && count >= 20+1+20+3 && count < 20+1+20+20 },
		"all, at once": func(direction, count int) bool { return direction == 1 && count >= 5 && count < 40 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := []string{"latency 8 20", "calls 8 20", "latency 8 20"}
			if name == "many" {
				lines = []string{"latency 8 200"}
			}
			lost := 0
			leader, other := serveBoth(t, kindFloor, lines, func(at string) string { return losing(t, at, lose) })
			for i := range lines {
				require.Empty(t, other[i].Error)
				lost += max(leader[i].Lost, other[i].Lost)
			}
			require.Positive(t, lost)
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
