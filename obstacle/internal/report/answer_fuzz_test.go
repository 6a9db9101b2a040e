package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// stream is a connection that delivers some bytes and then ends.
type stream struct {
	net.Conn
	io.Reader
}

func (s stream) Read(b []byte) (int, error)     { return s.Reader.Read(b) }
func (stream) Write(b []byte) (int, error)      { return len(b), nil }
func (stream) Close() error                     { return nil }
func (stream) SetWriteDeadline(time.Time) error { return nil }
func (stream) SetReadDeadline(time.Time) error  { return nil }

// Any answer that the process leading a run sends is refused, or reported.
func FuzzAnswer(f *testing.F) {
	run := rendezvous.Spec{
		N: [3]int{4, 1, 1}, Partition: problem.Partition{Cuts: [3][]int{{0, 2, 4}, {0, 1}, {0, 1}}}, Scheme: "sync",
	}
	whole, err := json.Marshal(launch.Outcome{
		Reason: launch.Failed, Missing: []int{1}, Filled: []launch.Filled{{Box: [][2]int{{2, 4}}, Points: 2, Iterates: 9}},
		Parts: 1, Steps: 3, FirstStep: 1, StepList: []launch.Step{{Step: 1}}, Losses: []*launch.Loss{{Rank: 1, Why: "x", From: nullable.NaN()}},
		Moves: []launch.Moved{{Rank: 1, At: 1}}, Peers: []rendezvous.Result{{Sweeps: 5, Points: 2}, {}}, Boxes: make([]problem.Box, 2),
		Hosts: make([]rendezvous.Member, 2), Setup: 1, Run: 2, Gather: 3, Checkpoint: &launch.Saved{Directory: "c", Written: 1},
	})
	require.NoError(f, err)
	add := func(outcome []byte) {
		var b []byte
		for _, m := range []rendezvous.Message{
			rendezvous.Answer{Spec: run, ProblemBytes: 8, Outcome: outcome},
			rendezvous.Chunk{Stream: rendezvous.StreamProblem, Data: make([]byte, 8)},
			rendezvous.Chunk{Stream: rendezvous.StreamSolution, Data: make([]byte, 32)},
		} {
			var err error
			b, err = rendezvous.Append(b, m)
			require.NoError(f, err)
		}
		f.Add(b)
	}
	add(whole)
	for _, number := range []string{"9223372036854775807", "-1", "4611686018427387904", "1e308", "null", "-9223372036854775808"} {
		for _, at := range regexp.MustCompile(`[:\[,]-?\d+`).FindAllIndex(whole, -1) {
			add([]byte(string(whole[:at[0]+1]) + number + string(whole[at[1]:])))
		}
	}
	add(bytes.Replace(whole, []byte(`"Losses":[`), []byte(`"Losses":[null,`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		conn := rendezvous.NewConn(stream{Reader: bytes.NewReader(b)}, 0)
		w, _, o, err := launch.Attach(conn, &launch.Status{}, func(rendezvous.View) {})
		if err != nil {
			return
		}
		points := w.N[0] * w.N[1] * w.N[2]
		require.Len(t, o.U, points)
		s := &Solution{Problem: "p", N: w.N[:launch.Dimension(w.N)], Points: points, Tolerance: 1e-6, Scheme: w.Scheme,
			Peers: len(o.Hosts), Threads: 1, Balance: "on", Probes: []Probe{}, Outputs: []Output{}}
		s.Add(o, w.Partition, verify.Evaluation{RelativeResidual: math.NaN(), ErrorBound: math.NaN()})
		var out bytes.Buffer
		s.Text(&out)
		_, err = json.Marshal(s)
		require.NoError(t, err)
	})
}
