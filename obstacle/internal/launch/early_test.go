package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// gathering returns a run of some processes, with some parts each, before the start. Processes join by themselves, or are
// those that start returns.
func gathering(t *testing.T, processes, parts int, start func() (Child, error)) *shell {
	t.Helper()
	p := rehearsalPlan(t)
	p.Recover, p.Suspect, p.PeerTimeout, p.Parts = rendezvous.RecoverLocal, 100*time.Millisecond, time.Second, parts
	cut, err := problem.Slabs(p.Problem.N, processes*max(1, parts), nil)
	require.NoError(t, err)
	p.Partition = cut
	if start != nil {
		p.Spawn = func(context.Context, int, string) (Child, error) { return start() }
	}
	r := newShell(p, "run", [32]byte{})
	r.ctx = t.Context()
	t.Cleanup(func() { close(r.done) })
	require.NoError(t, r.gather())
	t.Cleanup(r.server.Close)
	return r
}

// mute delivers nothing until it is closed.
type mute <-chan struct{}

func (m mute) Read([]byte) (int, error) { <-m; return 0, io.EOF }

// comes lets a process join for a rank, −1 for any, and listen. It returns the peer.
func (r *shell) comes(t *testing.T, pid, rank int) *member {
	t.Helper()
	conn := rendezvous.NewConn(stream{Reader: mute(t.Context().Done())}, 0)
	r.step(r.eventOf(input{arrived: conn, join: rendezvous.Join{Rank: rank, Host: "h", Pid: pid}}))
	for _, m := range r.members {
		if m.conn == r.newest.connection {
			r.hears(m, rendezvous.Listen{Control: "127.0.0.1:1", Epoch: r.epoch})
			return m
		}
	}
	return nil
}

func (r *shell) hears(m *member, msg rendezvous.Message) { r.step(event{of: m, message: msg}) }

// begins lets all peers listen and get ready for the epoch.
func (r *shell) begins(t *testing.T) {
	t.Helper()
	for _, m := range r.members {
		require.NotZero(t, m.conn, "rank %d", m.rank)
		r.hears(m, rendezvous.Listen{Control: "127.0.0.1:1", Epoch: r.epoch})
	}
	for _, m := range r.members {
		require.True(t, m.assigned)
		r.hears(m, rendezvous.Ready{Epoch: r.epoch})
	}
	require.False(t, r.early())
	require.False(t, r.active)
}

func (r *shell) closes(m *member) { r.step(event{of: m, closed: errors.New("reset")}) }

// passes lets some ticks pass in which the peers that are there send heartbeats.
func (r *shell) passes(d time.Duration) {
	for range r.ticks(d) {
		for _, m := range r.members {
			m.quietTicks = min(m.quietTicks, map[bool]int{true: 0, false: m.quietTicks}[m.conn != 0])
		}
		r.step(event{tick: &tick{}})
	}
}

// A peer that joined and is lost before the start is replaced at any time: while others join, when it has its work, and
// when it is ready.
func TestLossBeforeTheStart(t *testing.T) {
	for _, stage := range []string{"joined", "assigned", "ready"} {
		for _, by := range []string{"survivor", "spare", "process"} {
			t.Run(stage+", "+by, func(t *testing.T) { lossBeforeTheStart(t, stage, by) })
		}
	}
}

func lossBeforeTheStart(t *testing.T, stage, by string) {
	const processes = 3
	var started []*actor
	start := func() (Child, error) {
		started = append(started, &actor{done: make(chan struct{})})
		return started[len(started)-1], nil
	}
	if by != "process" {
		start = nil
	}
	r := gathering(t, processes, 1, start)
	last := processes
	if stage == "joined" {
		last--
	}
	for rank := range last {
		r.comes(t, 10+rank, rank)
	}
	if stage == "ready" {
		r.hears(r.members[1], rendezvous.Ready{})
	}
	if by == "spare" && stage != "joined" {
		require.Nil(t, r.comes(t, 20, -1))
		require.Len(t, r.spares, 1)
	}
	lost := r.members[1]
	r.closes(lost)
	if by == "process" {
		require.Empty(t, r.losses, "the exit status is awaited")
		r.step(event{of: lost, child: lost.child, exited: true, exit: errors.New("signal: killed")})
	}
	require.Nil(t, r.failure)
	require.Equal(t, 1, r.epoch)
	require.Len(t, r.losses, 1)
	require.Contains(t, r.losses[0].Why, "before the start")
	require.Zero(t, r.losses[0].Detected)
	if stage == "joined" {
		r.comes(t, 12, 2)
		if by == "spare" {
			require.Equal(t, 1, r.comes(t, 20, -1).rank, "the seat is free")
		}
	}
	switch by {
	case "survivor":
		if stage == "joined" {
			require.Nil(t, r.members[1].host, "a user may replace it")
			r.passes(2 * r.PeerTimeout)
		}
		require.True(t, r.members[1].host == r.members[0], "its process runs that part, too")
		r.comes(t, 10, 1)
	case "process":
		require.Len(t, started, processes+1)
		r.comes(t, 13, 1)
	}
	r.begins(t)
	require.NotEmpty(t, r.losses[0].By)
	require.Zero(t, float64(r.losses[0].Recovered))
	for _, m := range r.members {
		require.True(t, m.valued)
	}
}

// A run whose peers are not replaced ends with the cause of the first loss, which may follow what is a consequence.
func TestLossBeforeTheStartEndsARun(t *testing.T) {
	r := gathering(t, 3, 1, func() (Child, error) { return &actor{done: make(chan struct{})}, nil })
	r.Recover = rendezvous.RecoverOff
	for rank := range 3 {
		r.comes(t, 10+rank, rank)
	}
	r.hears(r.members[0], rendezvous.Result{Reason: Failed, Error: "peer-1 is lost", Lost: 1})
	require.False(t, r.finished())
	lost := r.members[1]
	r.closes(lost)
	r.step(event{of: lost, child: lost.child, exited: true, exit: errors.New("signal: killed")})
	require.True(t, r.finished())
	require.EqualError(t, r.notStarted(), "peer 1 (an actor) ended before the start: signal: killed")
	require.Empty(t, r.losses)
}

// exitStatus is the error of a process that has ended by itself, or by a signal.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
func (e exitStatus) ExitCode() int { return int(e) }

// A process that ends before it joins is started again if a signal has ended it.
func TestProcessThatDoesNotJoin(t *testing.T) {
	for status, again := range map[exitStatus]bool{-1: true, 1: false, 2: false} {
		started := 0
		r := gathering(t, 2, 2, func() (Child, error) { started++; return &actor{done: make(chan struct{})}, nil })
		m := r.members[2]
		r.step(event{of: m, child: m.child, exited: true, exit: status})
		require.Equal(t, again, r.failure == nil)
		require.Equal(t, map[bool]int{true: 3, false: 2}[again], started)
		if !again {
			require.EqualError(t, r.notStarted(), fmt.Sprintf("peer 2 (an actor) ended before the start: exit status %d", int(status)))
			continue
		}
		require.Equal(t, []int{3}, r.members[2].guests, "its process is to run that part, too")
		for _, rank := range []int{0, 1, 2, 3} {
			r.comes(t, 10+rank/2, rank)
		}
		r.begins(t)
	}
}

// The parts of a process that is lost before all of them have joined go to one process.
func TestLossOfAProcessWithSeveralParts(t *testing.T) {
	started := 0
	r := gathering(t, 2, 2, func() (Child, error) { started++; return &actor{done: make(chan struct{})}, nil })
	r.comes(t, 10, 0)
	r.comes(t, 10, 1)
	m := r.comes(t, 11, 2)
	require.True(t, r.members[3].reserved)
	r.closes(m)
	r.step(event{of: m, child: m.child, exited: true, exit: exitStatus(-1)})
	require.Equal(t, 3, started)
	require.Equal(t, []int{3}, r.members[2].guests)
	r.comes(t, 12, 2)
	r.comes(t, 12, 3)
	r.begins(t)

	r = gathering(t, 2, 2, nil) // by hand
	for _, rank := range []int{0, 1} {
		r.comes(t, 10, rank)
	}
	m = r.comes(t, 11, -1)
	require.Equal(t, 2, m.rank)
	r.closes(m)
	r.passes(2 * r.PeerTimeout)
	require.True(t, r.members[2].host == r.members[0], "its process runs that part, too")
	r.comes(t, 10, 2)
	r.comes(t, 10, 3)
	r.begins(t)
}

// A rank whose process ends again and again before the start ends the run.
func TestLossesBeforeTheStartAreBounded(t *testing.T) {
	r := gathering(t, 2, 1, func() (Child, error) { return &actor{done: make(chan struct{})}, nil })
	for range 2 * maxFruitless {
		if m := r.members[1]; r.failure == nil {
			r.step(event{of: m, child: m.child, exited: true, exit: exitStatus(-1)})
		}
	}
	require.True(t, r.finished())
	require.Contains(t, r.notStarted().Error(), "rank 1 was lost 4 times without a sweep between")
}

// A spare process that ends before the start is missed by nobody.
func TestSpareThatEndsBeforeTheStart(t *testing.T) {
	r := gathering(t, 2, 1, nil)
	s := &member{rank: 2, child: 9}
	r.starting = []*member{s}
	r.step(event{of: s, child: s.child, exited: true})
	require.Empty(t, r.starting)
	require.Nil(t, r.failure)
}
