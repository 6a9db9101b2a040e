package twonode

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipe is a channel within the process.
type pipe struct {
	in  io.Reader
	out io.Writer
}

func (p pipe) Send(data []byte) error {
	_, err := p.out.Write(data)
	return err
}

func (p pipe) Flush() error { return nil }

func (p pipe) Recv(buf []byte) error {
	_, err := io.ReadFull(p.in, buf)
	return err
}

func TestBothEndsExecuteTheSameCommands(t *testing.T) {
	const commands = "latency 8 10\nstream 100 50 0\nstream 100 50 1000000\n"
	a, b := io.Pipe()
	c, d := io.Pipe()
	other := make(chan error, 1)
	go func() { other <- Serve(pipe{a, d}, false, strings.NewReader(commands), io.Discard) }()
	var out strings.Builder
	require.NoError(t, Serve(pipe{c, b}, true, strings.NewReader(commands), &out))
	require.NoError(t, <-other)
	var got []Answer
	for dec := json.NewDecoder(strings.NewReader(out.String())); dec.More(); {
		var a Answer
		require.NoError(t, dec.Decode(&a))
		got = append(got, a)
	}
	require.Len(t, got, 3)
	require.Positive(t, got[0].Least)
	require.LessOrEqual(t, got[0].Least, got[0].Median)
	require.Positive(t, got[1].Elapsed)
}

func TestWrongCommandsAreErrors(t *testing.T) {
	for _, line := range []string{
		"", "latency", "latency 8", "latency 8 x", "latency 0 5", "dance 8 5", "stream 8 -1", "stream 1 2 3 4",
	} {
		var out strings.Builder
		err := Serve(pipe{}, true, strings.NewReader(line+"\n"), &out)
		require.ErrorContains(t, err, "want latency", line)
		var a Answer
		require.NoError(t, json.Unmarshal([]byte(out.String()), &a), line)
		require.NotEmpty(t, a.Error)
	}
}
