package launch

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// spare simulates a spare peer that joins, and returns it before it is needed.
func (r *rehearsal) spare(address string, pid int) *player {
	r.t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(r.t, err)
	conn := rendezvous.NewConn(c, await.Limit)
	r.conns = append(r.conns, conn)
	r.t.Cleanup(func() { conn.Close() })
	require.NoError(r.t, conn.Introduce(r.plan.Identity, rendezvous.Join{Rank: -1, Host: "h", Pid: pid}))
	p := &player{t: r.t, conn: conn, silent: make(chan struct{})}
	p.expectOne(rendezvous.KindSpare)
	return p
}

// needed receives the Welcome of a spare peer.
func (p *player) needed(r *rehearsal) rendezvous.Welcome {
	p.t.Helper()
	w := p.expectOne(rendezvous.KindWelcome, rendezvous.KindSpare).(rendezvous.Welcome)
	p.rank, p.box = w.Rank, r.plan.Partition.Box(iterate.Rank(w.Rank))
	p.expect(rendezvous.KindStart) // the run has started
	go p.beat()
	return w
}

// leaving simulates a run in which the process of peer 0 asks to leave while a spare peer waits, up to the epoch in which
// the part moves.
func leaving(t *testing.T) (r *rehearsal, from, other, to *player) {
	t.Helper()
	r = rehearse(t, recovering)
	address := <-r.address
	r.address <- address
	all := r.join()
	r.address <- address
	to = r.spare(address, 300)
	require.NoError(t, all[0].conn.Send(rendezvous.Beat{Sweep: 5, Relaxed: 160}))
	require.NoError(t, all[0].conn.Send(rendezvous.Leave{}))
	for _, p := range all {
		require.Equal(t, rendezvous.Epoch{Epoch: 1}, p.expect(rendezvous.KindEpoch))
	}
	w := to.needed(r)
	require.Zero(t, w.Rank)
	require.Equal(t, 1, w.Epoch)
	return r, all[0], all[1], to
}

// The part of a process that leaves goes to another one with its values. Nothing is repaired, and nobody is lost.
func TestPartMoves(t *testing.T) {
	r, from, other, to := leaving(t)
	c := from.expect(rendezvous.KindCapture).(rendezvous.Capture)
	require.Equal(t, []problem.Box{{Hi: r.plan.Problem.N}}, c.Boxes)
	for _, p := range []*player{from, other, to} {
		p.listen(1)
	}
	c.Boxes = []problem.Box{from.box}
	from.answer(c, 3)
	a := to.expect(rendezvous.KindAssign).(rendezvous.Assign)
	require.True(t, a.Initial)
	require.Nil(t, a.Repair)
	require.EqualValues(t, 7, a.Sweeps)
	to.expect(rendezvous.KindChunk) // the problem
	values := to.expect(rendezvous.KindChunk).(rendezvous.Chunk)
	require.Equal(t, rendezvous.StreamInitial, values.Stream)
	require.Len(t, values.Data, 8*from.box.Points())
	require.Nil(t, other.expect(rendezvous.KindAssign).(rendezvous.Assign).Repair)
	for _, p := range []*player{other, to} {
		require.NoError(t, p.conn.Send(rendezvous.Ready{Epoch: 1}))
	}
	require.Equal(t, rendezvous.Bye{Moved: true}, from.expect(rendezvous.KindBye))
	from.conn.Close()
	other.finish(1)
	to.finish(1)
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Empty(t, o.Losses)
	require.Len(t, o.Moves, 1)
	require.Equal(t, "pid 300 on h", o.Moves[0].To)
	require.EqualValues(t, 160, o.Peers[0].Relaxed, "with those of the former process")
}

// A process that is lost before all relax again does not end the move of its part: the former process goes on.
func TestPartStaysIfItsNewProcessIsLost(t *testing.T) {
	r, from, other, to := leaving(t)
	c := from.expect(rendezvous.KindCapture).(rendezvous.Capture)
	for _, p := range []*player{from, other, to} {
		p.listen(1)
	}
	c.Boxes = []problem.Box{from.box}
	from.answer(c, 3)
	to.expect(rendezvous.KindAssign)
	other.expect(rendezvous.KindAssign)
	to.conn.Close()
	for _, p := range []*player{from, other} {
		require.Equal(t, rendezvous.Epoch{Epoch: 2}, p.expect(rendezvous.KindEpoch))
		p.listen(2)
	}
	for _, p := range []*player{from, other} {
		a := p.expect(rendezvous.KindAssign).(rendezvous.Assign)
		require.False(t, a.Initial)
		require.Nil(t, a.Repair)
		require.NoError(t, p.conn.Send(rendezvous.Ready{Epoch: 2}))
	}
	from.finish(2)
	other.finish(2)
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Empty(t, o.Moves)
	require.Len(t, o.Losses, 1)
	require.Contains(t, o.Losses[0].By, "process of peer 0 (pid 100 on h), which still had the block")
}

// If the former process is lost before it has sent the values, the part is repaired.
func TestPartIsRepairedIfItsFormerProcessIsLost(t *testing.T) {
	r, from, other, to := leaving(t)
	from.expect(rendezvous.KindCapture)
	from.conn.Close()
	require.Equal(t, rendezvous.Epoch{Epoch: 2, Lost: []int{0}}, other.expect(rendezvous.KindEpoch))
	to.conn.Close()
	next, w := r.another(<-r.address)
	require.Zero(t, w.Rank)
	other.listen(2)
	next.listen(2)
	require.Equal(t, rendezvous.Host{}, other.expect(rendezvous.KindHost))
	c := other.expect(rendezvous.KindCapture).(rendezvous.Capture)
	other.answer(c, 1)
	a := next.expect(rendezvous.KindAssign).(rendezvous.Assign)
	require.NotNil(t, a.Repair)
}
