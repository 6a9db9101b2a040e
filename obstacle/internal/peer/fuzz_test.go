package peer

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stream is a connection that delivers some bytes and then ends.
type stream struct {
	net.Conn
	io.Reader
}

func (s stream) Read(b []byte) (int, error)     { return s.Reader.Read(b) }
func (stream) Write(b []byte) (int, error)      { return len(b), nil }
func (stream) Close() error                     { return nil }
func (stream) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (stream) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (stream) SetWriteDeadline(time.Time) error { return nil }
func (stream) SetReadDeadline(time.Time) error  { return nil }

// receives lets a peer handle the bytes that the leader of its run sends after a Welcome, and prepare the work that they hold.
func receives(t *testing.T, welcome, b []byte, rank int) {
	m, err := rendezvous.Decode(rendezvous.KindWelcome, welcome)
	if err != nil {
		return
	}
	w := m.(rendezvous.Welcome)
	w.Rank, w.Spec.PeerTimeout = rank, time.Second
	conn := rendezvous.NewConn(stream{Reader: bytes.NewReader(b)}, 0)
	p := newPeer(Options{
		Catalog: catalog.New(), Log: zerolog.Nop(), Bound: true, others: new(together), memory: shm.NewMemory(),
		waiting: newWaiting(nil),
	}, conn, w)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.process, p.in = ended, conn // peers that it is asked to run end at once
	go p.receiveFrom(conn)
	var newest *work
	for over := false; !over; {
		i := <-p.inputs
		if i.work != nil {
			newest = i.work
		}
		p.member.Step(0, i.Event)
		_, bye := i.Message.(rendezvous.Bye)
		over = bye || i.Closed
	}
	p.hosted.wait()
	if newest != nil && newest.err == nil && p.problem.Points() <= 1<<12 && p.welcome.Spec.Threads <= 4 {
		p.prepared(t, newest)
	}
	p.claim.Release()
}

// prepared does what a peer does with work before it opens sessions. Errors are as good as success.
func (p *peer) prepared(t *testing.T, w *work) {
	if p.resume(w) != nil {
		return
	}
	end := &endpoint{p: p, assign: &w.assign, epoch: w.assign.Epoch}
	if _, box := p.values.held(); w.assign.Repair != nil && box != p.box() {
		stop, cancel := context.WithCancel(t.Context())
		cancel() // the repair itself is not of interest
		_ = p.repair(stop, end, w)
	}
	for _, l := range p.Catalog.Methods.Links(&w.config, iterate.Rank(p.welcome.Rank)) {
		require.Less(t, int(l.Rank), p.cut.Peers())
	}
	m, err := p.Catalog.Methods.New(w.config)
	require.True(t, err != nil || m != nil)
}

// A member of a run survives all messages that the leader can send.
func FuzzMember(f *testing.F) {
	const most = math.MaxInt64
	spec, err := file.Open(nil, "membrane", nil)
	require.NoError(f, err)
	text, print := spec.Marshal(), spec.Fingerprint()
	cut := problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 2, 4}}}
	run := rendezvous.Spec{
		N: [3]int{4, 4, 4}, Partition: cut, Fingerprint: hex.EncodeToString(print[:]), Scheme: "sync", Order: problem.Jacobi,
		Tolerance: 1e-6, Threads: 1, Method: problem.MethodConfig{Name: problem.Richardson}, Recover: rendezvous.RecoverLocal,
		Protect: "auto",
	}
	assign := func(change func(a *rendezvous.Assign)) []rendezvous.Message {
		a := rendezvous.Assign{Cuts: cut.Cuts, Members: []rendezvous.Member{{}, {Rank: 1}}, ProblemBytes: int64(len(text))}
		change(&a)
		return []rendezvous.Message{a, rendezvous.Chunk{Stream: rendezvous.StreamProblem, Data: text}}
	}
	add := func(rank, parts int, all ...rendezvous.Message) {
		var b []byte
		for _, m := range all {
			var err error
			b, err = rendezvous.Append(b, m)
			require.NoError(f, err)
		}
		run.Parts = parts
		welcome, err := json.Marshal(rendezvous.Welcome{Spec: run})
		require.NoError(f, err)
		f.Add(welcome, b, int8(rank))
	}
	for _, rank := range []int{-1, 2, math.MaxInt8} {
		add(rank, 1, assign(func(*rendezvous.Assign) {})...)
	}
	far := problem.Box{Lo: [3]int{0, 0, most}, Hi: [3]int{most, most, most}}
	for _, method := range []string{problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz, "none"} {
		for _, scheme := range []string{"sync", "async", "delay:9223372036854775807", "hybrid", "none"} {
			usual := run
			run.Method.Name, run.Scheme = method, scheme
			add(0, 1, assign(func(*rendezvous.Assign) {})...)
			run.Method.Coarse, run.Method.Overlap = math.MaxInt32, math.MaxInt32
			add(1, 1, assign(func(*rendezvous.Assign) {})...)
			run = usual
		}
	}
	run.MaxSweeps, run.After, run.Threads = math.MaxUint64, math.MaxInt32, 1<<20
	add(1, 1, assign(func(*rendezvous.Assign) {})...)
	run.MaxSweeps, run.After, run.Threads = 0, 0, 1
	whole := problem.Box{Hi: [3]int{4, 4, 4}}
	half := problem.Box{Lo: [3]int{0, 0, 2}, Hi: [3]int{4, 4, 4}}
	values := rendezvous.Chunk{Stream: rendezvous.StreamAround, Data: make([]byte, 16*8)}
	for _, r := range []rendezvous.Repair{{Holes: []problem.Box{half}, Around: []problem.Box{{Hi: [3]int{4, 4, 2}}}},
		{Holes: []problem.Box{whole, half}}, {Holes: []problem.Box{far}, Around: []problem.Box{far}}} {
		add(1, 1, append(assign(func(a *rendezvous.Assign) { a.Repair = &r }), values)...)
	}
	add(1, 1, assign(func(a *rendezvous.Assign) { a.Resume = &rendezvous.Resume{Iterate: most, State: make([]byte, 64)} })...)
	add(1, 2, append(assign(func(a *rendezvous.Assign) { a.Epoch, a.After, a.MaxSweeps = most, most, most }),
		rendezvous.Start{}, rendezvous.Stop{}, rendezvous.Epoch{Epoch: most, Lost: []int{most, -1}}, rendezvous.Lost{Rank: most})...)
	add(0, 1, append(assign(func(*rendezvous.Assign) {}), rendezvous.Capture{Number: most, Boxes: []problem.Box{far}},
		rendezvous.Capture{Copy: &rendezvous.Copy{Rank: most, Iterate: most}},
		rendezvous.Capture{Sample: &rendezvous.Sample{First: [3]int{most, -1}, Stride: [3]int{0, most}}},
		rendezvous.Host{Rank: most}, rendezvous.Keep{Listener: make([]byte, 9)}, rendezvous.Resend{From: -1},
		rendezvous.Term{Term: register.Term{Number: most, Epoch: most, Leader: "x", Keepers: []string{"a", "b", "c"}}},
		rendezvous.Record{Term: register.Term{Number: most}, Losses: []byte("[null]")},
		rendezvous.Held{Rank: 1, Step: most, Box: half}, rendezvous.Bye{Early: true})...)
	f.Fuzz(func(t *testing.T, welcome, b []byte, rank int8) { receives(t, welcome, b, int(rank)) })
}
