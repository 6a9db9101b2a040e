package launch

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// panicking names the variable of the environment that makes a process a leader that panics.
const panicking = "P2PDC_TEST_PANIC"

// A leader that panics ends with exit code 1. Its peers get no message that the run is over.
func TestPanicOfTheLeaderEndsItLikeAKill(t *testing.T) {
	if os.Getenv(panicking) != "" {
		p := rehearsalPlan(t)
		p.Notes, p.Watch = os.Stdout, func(at Progress) {
			if at.Sweep > 0 {
				panic("of the test")
			}
		}
		_, err := Run(t.Context(), p)
		require.NoError(t, err)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), panicking+"=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	notes, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	r := &rehearsal{t: t, plan: rehearsalPlan(t), address: make(chan string, 1)}
	go r.findAddress(notes)
	all := r.join()
	require.NoError(t, all[0].conn.Send(rendezvous.Beat{Sweep: 1, Residual: nullable.NaN()})) // when all have their start
	for _, p := range all {
		m, err := p.conn.ReceiveWithin(await.Limit)
		require.Error(t, err, "%T", m)
	}
	exit, is := errors.AsType[*exec.ExitError](c.Wait())
	require.True(t, is)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, stderr.String(), "panic: of the test")
}

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

// feed lets a leader handle the bytes that two peers send after the start, or before, and the joining of a third process.
func feed(t testing.TB, p Plan, early bool, first, second []byte, j rendezvous.Join) {
	r := newShell(p, "run", driver.Key{})
	if r.ctx, r.zero, r.started = t.Context(), r.called, true; early {
		r.started, r.active, r.joining = false, true, true
	}
	r.Status.Enter(Solving)
	var links []*link
	for rank, b := range [][]byte{first, second} {
		m := r.members[rank]
		links = append(links, r.connect(m, stream{Reader: bytes.NewReader(b)}))
		m.valued, m.control = true, "127.0.0.1:1"
		m.join = rendezvous.Join{Host: "h", Pid: 100 + rank}
		go r.serve(m, links[rank])
	}
	handle := func(o input) {
		r.handle(r.eventOf(o))
		r.execute()
	}
	handleAll := func() {
		for {
			select {
			case o := <-r.inputs:
				handle(o)
				continue
			default:
			}
			break
		}
	}
	for _, l := range links {
		for !isClosed(l.served) {
			select {
			case o := <-r.inputs:
				handle(o)
			case <-l.served:
			}
		}
	}
	handleAll()
	handle(input{arrived: rendezvous.NewConn(stream{Reader: bytes.NewReader(first)}, 0), join: j})
	handleAll()
	r.step(event{tick: r.observe()})
	close(r.done)
}

// A leader survives all messages that a process with the secret can send.
func FuzzLeader(f *testing.F) {
	add := func(rank int, of, j int, all ...rendezvous.Message) {
		var b []byte
		for _, m := range all {
			var err error
			b, err = rendezvous.Append(b, m)
			require.NoError(f, err)
		}
		f.Add(b, []byte{}, j, uint8(of))
	}
	const most = 1<<63 - 1
	far := problem.Box{Lo: [3]int{0, 0, most}, Hi: [3]int{most, most, most}}
	for _, mode := range []int{0, 1, 2, 4, 5, 8, 24, 25, 28} {
		add(0, mode, most, rendezvous.Beat{Step: most, Sweep: most, Relaxed: most, Busy: 1e300})
		add(0, mode, 1<<62, rendezvous.Unreachable{Rank: most}, rendezvous.Unreachable{Rank: -1}, rendezvous.Unreachable{Rank: 1})
		add(0, mode, -1, rendezvous.Result{Lost: most, Sweeps: most}, rendezvous.Bye{})
		add(0, mode, -most, rendezvous.Block{Stream: rendezvous.StreamSolution, Box: far})
		add(0, mode, 1, rendezvous.Block{Stream: rendezvous.StreamStep, Box: far}, rendezvous.Step{Step: -1})
		add(0, mode, 0, rendezvous.Listen{Epoch: -1, Box: far}, rendezvous.Captured{Number: -1, Box: far, Sampled: true})
		add(0, mode, 0, rendezvous.Leave{}, rendezvous.Keeping{Address: "x"}, rendezvous.Repaired{Epoch: 1})
		add(0, mode, 0, rendezvous.Chunk{Stream: rendezvous.StreamCapture, Data: make([]byte, 8)},
			rendezvous.Captured{Number: 1, Copy: &rendezvous.Copy{Rank: most, Iterate: most}})
		add(0, mode, 0, rendezvous.Listen{Epoch: 1}, rendezvous.Sessions{Account: &rendezvous.Account{Reads: []rendezvous.Reads{{
			Rank: most, Newest: most, Ages: make([]uint64, 100)}}}})
	}
	f.Fuzz(func(t *testing.T, first, second []byte, rank int, mode uint8) {
		p := rehearsalPlan(t)
		p.Recover = [...]string{rendezvous.RecoverLocal, rendezvous.RecoverExact, rendezvous.RecoverOff, rendezvous.RecoverLocal}[mode%4]
		p.Suspect = time.Minute
		p.Balance = mode&4 != 0
		p.Parts = 1 + int(mode>>3)&1
		frame, err := rendezvous.Append(nil, rendezvous.Join{Rank: rank, OrSpare: mode&16 != 0, Host: "h", Pid: 9})
		require.NoError(t, err)
		var buf []byte
		join, err := rendezvous.Read(bytes.NewReader(frame), &buf)
		if err != nil {
			join = rendezvous.Join{Rank: -1}
		}
		for _, early := range []bool{false, true} {
			feed(t, p, early, first, second, join.(rendezvous.Join))
		}
	})
}
