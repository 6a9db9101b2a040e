package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// samples holds one message of every kind, with every field set.
func samples() []Message {
	term := register.Term{Number: 2, Epoch: 1, Leader: "a:1", Keepers: []string{"a:1", "b:1", "c:1"}}
	next := register.Term{Number: 3, Epoch: 2, Leader: "b:1", Keepers: []string{"b:1"}}
	return []Message{
		Challenge{Version: 1, Program: "v1", Fingerprint: "ab"},
		Join{Version: 1, Program: "v1", Fingerprint: "ab", Rank: -1, Host: "h", Pid: 7,
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, Purpose: ToVote,
			Standing: &Standing{Epoch: 1, Settled: true, Valued: true, Sweep: 9, Control: "127.0.0.1:9", Cluster: "nancy",
				Steps: []int{4, 5}}, Reconnect: &Reconnect{ID: []byte{1, 2}, Received: 3}},
		Received{Received: 4},
		Resend{From: 4}, Held{Rank: 1, Step: 4, Box: problem.Box{Hi: [3]int{4, 5, 6}}},
		Welcome{
			Key: make([]byte, 32), Rank: 3, Run: "r", Rails: Rails{"ib", "messages", 8128, 9000, 2, 3, true}, Cluster: "nancy", Spec: spec(),
			Reconnect: []byte{1, 2}, Addresses: []string{"10.0.0.1:9", "10.0.1.1:9"},
		},
		Refuse{Reason: "no", Later: true, Leader: "a:1"},
		Listen{Control: "127.0.0.1:9"},
		Assign{Members: []Member{{0, "h", 7, "127.0.0.1:9", "nancy", 4026531836}}, ProblemBytes: 12,
			Cuts: [3][]int{{0, 4}, {0, 5}, {0, 3, 6}}, MaxSweeps: 9, MaxTime: time.Second, Slowdown: 1.5, Initial: true},
		Chunk{Stream: StreamSolution, Offset: 1 << 33, Data: []byte{1, 2, 3}},
		Ready{}, Start{},
		Beat{Step: 2, Sweep: 5, Residual: 0.1},
		Stop{},
		Lost{Rank: 2, Why: "killed", CutOff: true},
		Result{
			Reason: "converged", Error: "e", Lost: -1, Sweeps: 1, Residual: 3e-300, Snapshots: 4, Points: 5, Seconds: 6,
			CPUSeconds: 7, Reconfigurations: 4, ReconfigurationSeconds: 0.5, StaleFaces: 6, PeakBytes: 8, IdleBytes: 9,
			Kernel:   "go",
			Sessions: []Session{{Peer: 1, Channel: Channel{Mode: "sync", Composition: []string{"A"}}, Overwritten: 3}},
		},
		Bye{},
		Block{Stream: StreamStep, Box: problem.Box{Lo: [3]int{0, 0, 3}, Hi: [3]int{4, 5, 6}}},
		Step{Step: 3, Sweeps: 40, Residual: 1e-7},
		Spare{Keepers: []string{"a:1"}}, Keep{Listener: []byte{1}}, Keeping{Address: "a:1"}, Term{Term: term},
		Record{Term: term, Run: "r", Key: make([]byte, 32), Spec: spec(), ElapsedMS: 7, Losses: []byte(`[{"rank":1}]`)},
		Vote{Message: register.Message{Kind: register.Accept, From: "a:1", To: "b:1", Base: term,
			Ballot: register.Ballot{Round: 2, Proposer: "a:1"}, Value: &next}},
		Answer{Spec: spec(), ProblemBytes: 12, Outcome: []byte(`{"Reason":"converged"}`)},
		Host{Rank: 3}, Leave{}, Probe{}, Unreachable{Epoch: 2, Rank: 1, Why: "w"}, Epoch{Epoch: 2, Lost: []int{1, 3}},
		Capture{Number: 3, Boxes: []problem.Box{{Lo: [3]int{0, 0, 3}, Hi: [3]int{4, 5, 6}}}},
		Captured{Number: 3, Box: problem.Box{Hi: [3]int{4, 5, 6}}, Step: 1, Sweep: 7, Residual: 1e-3},
		Repaired{Epoch: 2, Method: "sor", Iterates: 4, Residual: 1e-4, Seconds: 0.5, Refused: 2, Unbound: "u"},
		view(), Sessions{Sessions: []Session{{
			Peer: 1, RTTSeconds: 1e-4,
			Channel: Channel{Name: "halo/0-1", Mode: "async", Locality: "same host", Why: "w", Composition: []string{"A"}},
		}}},
	}
}

// spec returns a Spec with every field set.
func spec() Spec {
	return Spec{
		Problem: "membrane", Fingerprint: "cd", N: [3]int{4, 5, 6}, After: 2, FromFile: true,
		Partition:    problem.Partition{Cuts: [3][]int{{0, 4}, {0, 5}, {0, 3, 6}}},
		PartitionWhy: "w", MethodWhy: "v", Scheme: "delay:3", Method: problem.MethodConfig{Name: problem.SOR, Omega: 1.5}, Order: problem.InTurn, Tolerance: 1e-6,
		MaxSweeps: 9, MaxTime: time.Minute, Parts: 2, Balance: true, BalanceParts: true, Elastic: true, Threads: 2, Pin: true,
		Slowdown: map[int]float64{1: 2}, Reconfigure: true, Reports: true, MTU: 1500, Protect: "auto", Congestion: "cubic",
		Rows: []string{"NegativeAck"}, Rails: Rails{"ib", "messages", 8128, 9000, 2, 3, true}, Seed: 1 << 63,
		PeerTimeout: 10 * time.Second, Recover: RecoverExact, Suspect: time.Second, KeepEvery: time.Second, Keepers: 3, Spares: 1,
	}
}

// view returns a View with every field set.
func view() View {
	term := register.Term{Number: 2, Epoch: 1, Leader: "b:1", Keepers: []string{"b:1", "c:1", "a:1"}}
	described := spec()
	return View{
		Phase: 1, ElapsedMS: 1500, Step: 2, Sweep: 40, Residual: 0.25, Epoch: 1, Term: term,
		Spec: &described, Steps: 3,
		Members: []Member{{0, "h", 7, "127.0.0.1:9", "nancy", 4026531836}}, Boxes: []problem.Box{{Hi: [3]int{4, 5, 6}}},
		Losses: []byte(`[{"rank":1}]`), Moves: []byte(`[{"rank":2}]`),
		Ranks: []RankView{{Rank: 1, Sweep: 39, Lost: true, Sessions: []Session{{Peer: 0}},
			Account: &Account{Sweep: 39, Seconds: 1, Reads: []Reads{{Rank: 0, Faces: 3, Ages: []uint64{3}}}}}},
	}
}

// A View without lists, the most frequent one, has these bytes. A change of them needs another Version.
func TestBytesOfAView(t *testing.T) {
	v := view()
	v.Spec, v.Steps, v.Members, v.Boxes, v.Losses, v.Moves, v.Ranks = nil, 0, nil, nil, nil, nil, []RankView{{Rank: 1, Sweep: 39}}
	frame, err := Append(nil, v)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\xb6\x23"+`{"phase":1,"elapsed_ms":1500,"step":2,"sweep":40,"residual":0.25,"epoch":1,`+
		`"term":{"number":2,"epoch":1,"leader":"b:1","keepers":["b:1","c:1","a:1"]},"ranks":[{"rank":1,"sweep":39}]}`, string(frame))
}

func TestEveryMessageSurvives(t *testing.T) {
	kinds := map[Kind]bool{}
	for _, m := range samples() {
		kinds[kindOf(m)] = true
		frame, err := Append([]byte("before"), m)
		require.NoError(t, err)
		var buf []byte
		got, err := Read(bytes.NewReader(frame[len("before"):]), &buf)
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for k := range Kind(255) {
		require.Equal(t, kinds[k], bound(k) > 0, "kind %d", k)
	}
}

func TestNotANumberTravelsAsNull(t *testing.T) {
	b, err := json.Marshal(Beat{Residual: nullable.NaN()})
	require.NoError(t, err)
	require.JSONEq(t, `{"step":0,"sweep":0,"residual":null,"relaxed":0,"busy":0}`, string(b))
	m, err := Decode(KindBeat, b)
	require.NoError(t, err)
	require.True(t, math.IsNaN(float64(m.(Beat).Residual)))
}

func TestReadRefuses(t *testing.T) {
	frame := func(k Kind, n int, body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(n))
		return append(append(b, byte(k)), body...)
	}
	for name, c := range map[string]struct {
		bytes []byte
		only  []Kind
		want  error
	}{
		"nothing":            {nil, nil, io.EOF},
		"half a head":        {[]byte{0, 0}, nil, io.ErrUnexpectedEOF},
		"kind 0":             {frame(0, 0, ""), nil, ErrMalformed},
		"unknown kind":       {frame(99, 0, ""), nil, ErrMalformed},
		"too long":           {frame(KindJoin, MaxHello+1, ""), nil, ErrMalformed},
		"longest length":     {frame(KindChunk, math.MaxUint32, ""), nil, ErrMalformed},
		"cut short":          {frame(KindReady, 2, "{"), nil, io.ErrUnexpectedEOF},
		"not wanted now":     {frame(KindAssign, 2, "{}"), []Kind{KindJoin}, ErrMalformed},
		"no JSON":            {frame(KindReady, 2, "xx"), nil, ErrMalformed},
		"unknown field":      {frame(KindReady, 7, `{"x":1}`), nil, ErrMalformed},
		"two values":         {frame(KindReady, 4, `{}{}`), nil, ErrMalformed},
		"wrong type":         {frame(KindRefuse, 12, `{"reason":1}`), nil, ErrMalformed},
		"short chunk":        {frame(KindChunk, 3, "abc"), nil, ErrMalformed},
		"chunk of stream 9":  {frame(KindChunk, 9, "\x09\x00\x00\x00\x00\x00\x00\x00\x00"), nil, ErrMalformed},
		"chunk far out":      {frame(KindChunk, 9, "\x01\x7f\x00\x00\x00\x00\x00\x00\x00"), nil, ErrMalformed},
		"chunk at negative":  {frame(KindChunk, 9, "\x01\xff\x00\x00\x00\x00\x00\x00\x00"), nil, ErrMalformed},
		"HTTP by mistake":    {[]byte("GET / HTTP/1.1\r\n\r\n"), nil, ErrMalformed},
		"number out of JSON": {frame(KindBeat, 26, `{"sweep":1,"residual":NaN}`), nil, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var buf []byte
			_, err := Read(bytes.NewReader(c.bytes), &buf, c.only...)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// A large length allocates no memory before the bytes arrive.
func TestReadTakesMemoryAsBytesCome(t *testing.T) {
	frame := append(binary.BigEndian.AppendUint32(nil, MaxBody), byte(KindAssign))
	var buf []byte
	_, err := Read(bytes.NewReader(append(frame, '{')), &buf)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.LessOrEqual(t, cap(buf), 2*readStep)
}

func TestAppendRefusesWhatReadWould(t *testing.T) {
	_, err := Append(nil, Chunk{Stream: StreamProblem, Data: make([]byte, MaxChunk+1)})
	require.ErrorContains(t, err, "the bound is")
	_, err = Append(nil, Refuse{Reason: string(make([]byte, MaxHello))})
	require.ErrorContains(t, err, "the bound is")
	_, err = Append(nil, Assign{Slowdown: math.Inf(1)})
	require.Error(t, err)
}

// Any bytes give messages or an error, and a message that was read is the same after writing and reading it again.
func FuzzRead(f *testing.F) {
	for _, m := range samples() {
		frame, err := Append(nil, m)
		require.NoError(f, err)
		f.Add(frame)
	}
	f.Add([]byte("\x00\x00\x00\x02\x0e{}\x00\x00\x00\x02\x0e{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var buf, again []byte
		for {
			m, err := Read(r, &buf)
			if err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("unexpected error %v", err)
				}
				return
			}
			frame, err := Append(nil, m)
			if err != nil {
				return // longer than it was: JSON escapes what came unescaped
			}
			second, err := Read(bytes.NewReader(frame), &again)
			require.NoError(t, err)
			twice, err := Append(nil, second)
			require.NoError(t, err)
			require.Equal(t, frame, twice)
		}
	})
}
