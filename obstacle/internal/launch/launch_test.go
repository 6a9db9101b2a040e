package launch

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

func TestMain(m *testing.M) {
	// Parallel tests mostly wait for timeouts: run more of them than there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// rehearsal is a run whose peers the test simulates over real connections.
type rehearsal struct {
	t       *testing.T
	plan    Plan
	address chan string
	stop    chan struct{}
	conns   []*rendezvous.Conn // of simulated peers
	outcome *Outcome
	err     error
	done    chan struct{}
	tape    *tape
}

const peers = 2

// rehearsalPlan returns the plan of a rehearsal. It has no notes and no interrupt.
func rehearsalPlan(t testing.TB) Plan {
	t.Helper()
	spec, err := file.Open(nil, "membrane", nil)
	require.NoError(t, err)
	prob, err := spec.BuildValid([]int{4})
	require.NoError(t, err)
	cut, err := problem.Slabs(prob.N, peers, nil)
	require.NoError(t, err)
	identity, err := rendezvous.NewKeyIdentity("v1", "f", driver.Key{1})
	require.NoError(t, err)
	return Plan{
		Catalog: catalog.New(), ProblemSpec: spec, Problem: prob, Identity: identity,
		Spec: rendezvous.Spec{
			Partition: cut, Scheme: "sync", Order: problem.Jacobi, Tolerance: 1e-6, Threads: 1, PeerTimeout: await.Limit, Protect: "auto",
		},
		Address: "127.0.0.1:0", JoinTime: await.Limit, Log: zerolog.Nop(),
	}
}

func rehearse(t *testing.T, change func(p *Plan)) *rehearsal {
	t.Helper()
	notes, says := io.Pipe()
	r := &rehearsal{t: t, address: make(chan string, 1), stop: make(chan struct{}), done: make(chan struct{})}
	r.plan = rehearsalPlan(t)
	r.plan.Interrupt, r.plan.Notes = r.stop, says
	if change != nil {
		change(&r.plan)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newShell(r.plan, "run", driver.NewKey())
	r.tape = newTape(s)
	go func() {
		defer close(r.done)
		r.outcome, r.err = s.solve(ctx)
		says.Close()
	}()
	go r.findAddress(notes)
	t.Cleanup(func() { cancel(); <-r.done; r.tape.replay(t) })
	return r
}

// findAddress reads the address of the launcher from its notes.
func (r *rehearsal) findAddress(notes io.Reader) {
	re := regexp.MustCompile(`at (\S+): obstacle`)
	s := bufio.NewScanner(notes)
	for s.Scan() {
		if m := re.FindStringSubmatch(s.Text()); m != nil {
			r.address <- m[1]
		}
	}
}

// player is a simulated peer. It sends heartbeats until silent is closed.
type player struct {
	t      *testing.T
	conn   *rendezvous.Conn
	rank   int
	box    problem.Box
	spec   rendezvous.Spec
	assign rendezvous.Assign
	silent chan struct{}
	later  float64 // added to the values of its block
}

// join simulates the peers up to the start.
func (r *rehearsal) join() []*player {
	r.t.Helper()
	address := <-r.address
	var all []*player
	for rank := range peers {
		var conn *rendezvous.Conn
		var spec rendezvous.Spec
		// The launcher may not have noticed yet that an earlier peer of this rank has left.
		await.Until(r.t, func() bool {
			c, err := net.Dial("tcp", address)
			require.NoError(r.t, err)
			conn = rendezvous.NewConn(c, await.Limit)
			r.conns = append(r.conns, conn)
			r.t.Cleanup(func() { conn.Close() })
			w, err := conn.Join(r.plan.Identity, rendezvous.Join{Rank: rank, Host: "h", Pid: 100 + rank}, await.Limit)
			if err != nil {
				require.ErrorContains(r.t, err, fmt.Sprintf("rank %d is taken", rank))
				return false
			}
			require.Equal(r.t, rank, w.Rank)
			spec = w.Spec
			return true
		}, "the launcher to take rank %d", rank)
		require.NoError(r.t, conn.Send(rendezvous.Listen{Control: fmt.Sprintf("127.0.0.1:%d", 1000+rank)}))
		p := &player{t: r.t, conn: conn, rank: rank, spec: spec, box: r.plan.Partition.Box(iterate.Rank(rank)), silent: make(chan struct{})}
		go p.beat()
		all = append(all, p)
	}
	for _, p := range all {
		m, err := p.conn.Receive(rendezvous.KindAssign)
		require.NoError(r.t, err)
		p.assign = m.(rendezvous.Assign)
		_, err = p.conn.Receive(rendezvous.KindChunk)
		require.NoError(r.t, err)
		require.NoError(r.t, p.conn.Send(rendezvous.Ready{}))
	}
	for _, p := range all {
		p.expect(rendezvous.KindStart)
	}
	return all
}

func (p *player) beat() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p.conn.Send(rendezvous.Beat{Residual: nullable.NaN()}) != nil {
				return
			}
		case <-p.silent:
			return
		}
	}
}

func (p *player) expect(k rendezvous.Kind) rendezvous.Message {
	p.t.Helper()
	m, err := p.conn.ReceiveWithin(await.Limit, k)
	require.NoError(p.t, err)
	return m
}

// block sends the peer's block, whose values are all rank + 1 + later.
func (p *player) block() {
	data := make([]byte, blocks.Bytes(p.box))
	values := make([]float64, p.box.Points())
	for i := range values {
		values[i] = float64(p.rank+1) + p.later
	}
	blocks.Encode(data, values)
	half := len(data) / 16 * 8
	require.NoError(p.t, p.conn.Send(rendezvous.Chunk{Stream: rendezvous.StreamSolution, Data: data[:half]}))
	require.NoError(p.t, p.conn.Send(rendezvous.Chunk{Stream: rendezvous.StreamSolution, Offset: int64(half), Data: data[half:]}))
}

func (p *player) result(reason, text string, lost int) {
	require.NoError(p.t, p.conn.Send(rendezvous.Result{Reason: reason, Error: text, Lost: lost, Points: p.box.Points(), Sweeps: 7}))
}

func (r *rehearsal) end() *Outcome {
	r.t.Helper()
	r.over()
	require.NoError(r.t, r.err)
	return r.outcome
}

// over waits for the end of the run. The simulated peers read what the launcher still sends, and leave after Bye.
func (r *rehearsal) over() {
	for _, c := range r.conns {
		go leave(c)
	}
	<-r.done
}

func leave(c *rendezvous.Conn) {
	defer c.Close()
	for {
		m, err := c.ReceiveWithin(await.Limit, rendezvous.KindAssign, rendezvous.KindChunk, rendezvous.KindStart,
			rendezvous.KindStop, rendezvous.KindLost, rendezvous.KindBye, rendezvous.KindEpoch, rendezvous.KindCapture,
			rendezvous.KindHost, rendezvous.KindProbe)
		if _, bye := m.(rendezvous.Bye); bye || err != nil {
			return
		}
	}
}

func TestBlocksAreAssembled(t *testing.T) {
	r := rehearse(t, nil)
	all := r.join()
	require.Equal(t, "127.0.0.1:1001", all[0].assign.Members[1].Control)
	require.Equal(t, "membrane", all[0].spec.Problem)
	for _, p := range all {
		p.block()
		p.result(Converged, "", -1)
	}
	for _, p := range all {
		p.expect(rendezvous.KindBye)
	}
	for _, p := range all {
		p.conn.Close()
	}
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Empty(t, o.Missing)
	for i, v := range o.U {
		require.Equal(t, float64(1+2*i/len(o.U)), v)
	}
}

func TestInterruptReachesThePeers(t *testing.T) {
	r := rehearse(t, nil)
	all := r.join()
	close(r.stop)
	for _, p := range all {
		p.expect(rendezvous.KindStop)
		p.block()
		p.result(Interrupted, "", -1)
	}
	require.Equal(t, Interrupted, r.end().Reason)
}

// If one peer fails, in whatever way, the launcher notifies the other, keeps its block and names the failed one.
func TestFailuresOfOnePeer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(p *player)
		want  string
	}{
		"leaves":        {func(p *player) { p.conn.Close() }, "peer 1 (pid 101 on h) closed its connection"},
		"falls silent":  {func(p *player) { close(p.silent) }, "peer 1 (pid 101 on h) has been silent"},
		"fails":         {func(p *player) { p.result(Failed, "out of paper", -1) }, "peer 1 (pid 101 on h) failed: out of paper"},
		"wrong offset":  {func(p *player) { p.chunk(rendezvous.StreamSolution, 8, 8) }, "invalid part of its block"},
		"wrong stream":  {func(p *player) { p.chunk(rendezvous.StreamProblem, 0, 8) }, "invalid part of its block"},
		"too much":      {func(p *player) { p.chunk(rendezvous.StreamSolution, 0, 1024) }, "invalid part of its block"},
		"out of turn":   {func(p *player) { _ = p.conn.Send(rendezvous.Ready{}); p.chunk(rendezvous.StreamSolution, 0, 8) }, "unexpected rendezvous.Ready"},
		"nonsense":      {func(p *player) { _ = p.conn.Send(rendezvous.Start{}) }, "unexpected kind 9"},
		"half a block":  {func(p *player) { p.chunk(rendezvous.StreamSolution, 0, 8); p.result(Converged, "", -1) }, "a block is incomplete"},
		"blames others": {func(p *player) { p.result(Failed, "silent for 1 s", 0) }, "peer 0 (pid 100 on h) was lost: peer 1 (pid 101 on h) reports silent for 1 s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rehearse(t, func(p *Plan) {
				p.Status = &Status{}
				if name == "falls silent" {
					p.PeerTimeout = time.Second
				}
			})
			all := r.join()
			c.fault(all[1])
			if name == "half a block" { // found at the end
				all[0].block()
				all[0].result(Converged, "", -1)
			} else {
				all[0].expect(rendezvous.KindLost)
				all[0].block()
				all[0].result(Failed, "as reported", 1)
			}
			o := r.end()
			require.Equal(t, Failed, o.Reason)
			require.Contains(t, o.Failure, c.want)
			require.Equal(t, []int{1}, o.Missing)
			lost := 1
			if name == "fails" || name == "half a block" || name == "blames others" { // a report of a peer does not count as a loss
				lost = 0
			}
			require.Len(t, r.plan.Status.State().Lost, lost)
			require.Equal(t, 1.0, o.U[0], "the block of the other peer is kept")
			box := r.plan.Partition.Box(1)
			require.Len(t, o.Filled, 1)
			require.Equal(t, ranges(box), o.Filled[0].Box)
			require.LessOrEqual(t, float64(o.Filled[0].Residual), r.plan.Tolerance)
			around := func(at [3]int) float64 { return r.plan.Problem.ValueAt(o.U, at) }
			want, err := richardson.SolveSequential(r.plan.Problem.Inner(box, around, nil), problem.InTurn, 1e-10, 0, 0, 0)
			require.NoError(t, err)
			require.InDeltaSlice(t, want.U, blocks.Slice(o.U, r.plan.Problem.N, box), 1e-5, "the lost block is filled from its face")
		})
	}
}

func (p *player) chunk(s rendezvous.Stream, offset int64, n int) {
	_ = p.conn.Send(rendezvous.Chunk{Stream: s, Offset: offset, Data: make([]byte, n)})
}

// Only a peer that the launcher started can have written its block to shared memory.
func TestSharedMemoryNeedsAChild(t *testing.T) {
	for _, answer := range [][]float64{nil, make([]float64, 64)} {
		r := rehearse(t, func(p *Plan) { p.Answer = answer })
		all := r.join()
		require.NoError(t, all[1].conn.Send(rendezvous.Result{Reason: Converged, Lost: -1, Placed: true}))
		all[0].expect(rendezvous.KindLost)
		all[0].block()
		all[0].result(Converged, "", -1)
		o := r.end()
		require.Equal(t, Failed, o.Reason)
		require.Contains(t, o.Failure, "claims that its block is in shared memory")
		require.Equal(t, []int{1}, o.Missing)
		require.Equal(t, 1.0, o.U[0])
	}
}

func TestJoinTimeout(t *testing.T) {
	r := rehearse(t, func(p *Plan) { p.JoinTime = 50 * time.Millisecond })
	<-r.done
	require.ErrorContains(t, r.err, "2 of 2 peers did not join within 50ms")
}

// Another peer can replace one that was started by hand and fails before the start. Without a replacement the error
// names the failed one.
func TestReplacementOfAFailedPeer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(c *rendezvous.Conn)
		want  string
	}{
		"cannot take part": {func(c *rendezvous.Conn) { _ = c.Send(rendezvous.Result{Reason: Failed, Error: "no port", Lost: -1}) }, "cannot take part: no port"},
		"closes":           {func(c *rendezvous.Conn) { c.Close() }, "closed its connection before the start: end of stream"},
		"falls silent":     {func(*rendezvous.Conn) {}, "has been silent for more than 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, replaced := range []bool{true, false} {
				r := rehearse(t, func(p *Plan) {
					if name == "falls silent" {
						p.PeerTimeout = 100 * time.Millisecond
					}
					if !replaced { // only then it ends the run: long after the peer has left
						p.JoinTime = 2 * time.Second
					}
				})
				address := <-r.address
				first := r.joinOne(address, 1)
				c.leave(first)
				_, err := first.Receive(rendezvous.KindBye)
				require.Error(t, err, "the launcher closes the connection")
				if replaced {
					r.address <- address
					for _, p := range r.join() {
						p.block()
						p.result(Converged, "", -1)
					}
					require.Equal(t, Converged, r.end().Reason)
					continue
				}
				r.over()
				require.ErrorContains(t, r.err, "2 of 2 peers did not join within 2s (--join-timeout); the last one that failed: peer 1 (pid 7 on h) "+c.want)
			}
		})
	}
}

// joinOne joins the run and sends nothing more.
func (r *rehearsal) joinOne(address string, rank int) *rendezvous.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(r.t, err)
	conn := rendezvous.NewConn(c, await.Limit)
	r.conns = append(r.conns, conn)
	r.t.Cleanup(func() { conn.Close() })
	_, err = conn.Join(r.plan.Identity, rendezvous.Join{Rank: rank, Host: "h", Pid: 7}, await.Limit)
	require.NoError(r.t, err)
	return conn
}

func TestLoopbackAmongHostsIsRefused(t *testing.T) {
	r := rehearse(t, nil)
	address := <-r.address
	for rank := range peers {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		conn := rendezvous.NewConn(c, await.Limit)
		r.conns = append(r.conns, conn)
		_, err = conn.Join(r.plan.Identity, rendezvous.Join{Rank: rank, Host: fmt.Sprintf("host%d", rank)}, await.Limit)
		require.NoError(t, err)
		require.NoError(t, conn.Send(rendezvous.Listen{Control: "127.0.0.1:9"}))
	}
	r.over()
	require.ErrorContains(t, r.err, "listens on loopback only, but peer 1 (pid 0 on host1) is on another host")
}

func TestUnauthenticatedConnectionsAreIgnored(t *testing.T) {
	r := rehearse(t, nil)
	address := <-r.address
	for range 2 * rendezvous.MinPending {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, _ = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		defer c.Close()
	}
	r.address <- address
	for _, p := range r.join() {
		p.block()
		p.result(Converged, "", -1)
	}
	require.Equal(t, Converged, r.end().Reason)
}
