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

	"github.com/p2pdc/p2pdc/bench/internal/twonode"
	"github.com/p2pdc/p2pdc/internal/measure"
)

// Both ends of each transport of this program execute every command.
func TestEndsExecuteCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for kind, lines := range map[string][]string{
		kindTCP:                      {"latency 8 20", "stream 65536 40 0", "stream 8 500 0", "stream 65536 32 1000000000"},
		kindDatagrams:                {"latency 8 20", fmt.Sprintf("calls %d 5", callSizes[0])},
		kindOurs:                     {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindLink:                     {"latency 8 20", "latency 65536 4"},
		kindComposite:                {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindLink + asleepSuffix:      {"latency 8 20", "latency 65536 4"},
		kindComposite + asleepSuffix: {"latency 8 20", "latency 524288 4", "stream 65536 40 0"},
		kindOurs + asleepSuffix:      {"latency 8 20"},
		kindOurs + tracedSuffix:      {"latency 8 20"},
		kindShared + framesSuffix:    {"latency 8 20"},
		kindStream:                   {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindSealedStream:             {"latency 8 20", "latency 524288 4"},
		kindChosen:                   {"latency 8 20", "stream 65536 40 0"},
		kindShared:                   {"latency 8 20", "latency 524288 4", "stream 65536 40 0", "stream 8 500 0"},
		kindAsync:                    {fmt.Sprintf("calls %d 5", callSizes[0]), fmt.Sprintf("calls %d 5", callSizes[1])},
	} {
		t.Run(kind, func(t *testing.T) { serveBoth(t, kind, lines, func(address string) string { return address }) })
	}
}

// serveBoth has both ends of a transport execute commands in this process. by maps the address of
// the end that is called to the one by which the other end calls it.
func serveBoth(
	t *testing.T, kind string, lines []string, by func(address string) string,
) (leader, other []twonode.Answer) {
	var answered sync.WaitGroup // both ends stay until both have done everything
	answered.Add(2)
	commands := func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), after{&answered})
	}
	first, out := io.Pipe()
	called := make(chan error, 1)
	go func() {
		called <- (&endpoint{kind: kind, host: "127.0.0.1"}).serve(context.Background(), commands(), out)
		out.Close()
	}()
	in := bufio.NewReader(first)
	address, err := in.ReadString('\n')
	require.NoError(t, err)
	read := func(r io.Reader) <-chan []twonode.Answer {
		all := make(chan []twonode.Answer, 1)
		go func() {
			defer answered.Done()
			var got []twonode.Answer
			for d := json.NewDecoder(r); len(got) < len(lines); {
				var a twonode.Answer
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
	answers, mine := io.Pipe()
	ours := read(answers)
	caller := endpoint{kind: kind, host: "127.0.0.1", call: by(strings.TrimSpace(address))}
	require.NoError(t, caller.serve(context.Background(), commands(), mine))
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

// lossyForwarder forwards datagrams between a caller and address, except those for which lose returns true:
// direction is 0 from the caller and 1 to it, count the number of the datagram in its direction. It
// returns its address for the caller.
func lossyForwarder(t *testing.T, address string, lose func(direction, count int) bool) string {
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

// Lost datagrams, the first and the last included, are counted and stop nothing.
func TestLostDatagramsAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for name, lose := range map[string]func(direction, count int) bool{
		"some":         func(direction, count int) bool { return count%(7+2*direction) == 0 },
		"many":         func(direction, count int) bool { return count%(3+direction) == 1 },
		"calls' last":  func(direction, count int) bool { return direction == 0 && count >= 20+1+20+3 && count < 20+1+20+10 },
		"all, at once": func(direction, count int) bool { return direction == 1 && count >= 5 && count < 15 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := []string{"latency 8 20", "calls 8 20", "latency 8 20"}
			if name == "many" {
				lines = []string{"latency 8 16"}
			}
			lost := 0
			leader, other := serveBoth(t, kindDatagrams, lines, func(at string) string { return lossyForwarder(t, at, lose) })
			for i := range lines {
				require.Empty(t, other[i].Error)
				lost += max(leader[i].Lost, other[i].Lost)
			}
			require.Positive(t, lost)
		})
	}
}

// after is a reader that ends, empty, when both ends have answered.
type after struct{ answered *sync.WaitGroup }

func (a after) Read([]byte) (int, error) {
	a.answered.Wait()
	return 0, io.EOF
}

func TestModeChangesAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	r := &measure.Run{Rounds: 1}
	require.NoError(t, changeModes(t.Context(), r))
	require.Len(t, r.Results, 2)
	calls, pauses := r.Results[0], r.Results[1]
	require.Positive(t, pauses.Value)
	require.Greater(t, calls.Value, pauses.Value, "the pause is part of the change")
}

func TestUnknownEndsAreRefused(t *testing.T) {
	e := endpoint{kind: "pigeon", host: "127.0.0.1"}
	require.ErrorContains(t, e.serve(t.Context(), strings.NewReader(""), io.Discard), "-end pigeon")
}
