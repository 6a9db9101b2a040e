package launch

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// resuming returns a run with --recover exact at the beginning of epoch 1, of which rank 2 of three was lost.
func resuming(t *testing.T) *run {
	r := rehearse(t, nil)
	close(r.stop)
	<-r.done
	p := r.plan
	p.Recover, p.MaxSweeps = rendezvous.RecoverExact, 1000
	p.Partition = problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 1, 2, 4}}}
	w := &run{Plan: p, started: true, tick: tickEvery(p.PeerTimeout, 0)}
	w.active, w.epoch = true, 1
	for rank := range 3 {
		w.members = append(w.members, &member{
			rank: rank, box: p.Partition.Box(iterate.Rank(rank)), valued: rank < 2,
			caller: caller{conn: connection(1 + rank), join: rendezvous.Join{Host: "h"}}, informed: rank < 2, sweep: 70,
		})
	}
	w.open = []*Loss{{Rank: 2}}
	return w
}

// held is what a survivor has of some iterates: its own values, and those of another peer.
func held(of iterate.Rank, k ...iterate.Iteration) *buddy.Holding {
	return &buddy.Holding{Own: k, Others: map[iterate.Rank][]iterate.Iteration{of: k}}
}

func (r *run) enter(holdings ...*buddy.Holding) {
	for rank, h := range holdings {
		r.receiveRecovery(r.members[rank], rendezvous.Listen{Epoch: r.epoch, Idle: true, Holding: h, Sweep: 70})
	}
}

// All peers go back to the newest iterate of which each has a copy. The lost block's comes from its buddy.
func TestResumption(t *testing.T) {
	r := resuming(t)
	r.enter(held(2, 40, 60), held(0, 40, 60), nil)
	want := rendezvous.Capture{Number: -1, Copy: &rendezvous.Copy{Rank: 2, Iterate: 60}}
	require.Equal(t, want, r.next(r.members[0]))
	require.False(t, r.members[2].assigned, "the copy has not arrived")
	require.True(t, r.members[1].assigned, "it can connect meanwhile")
	require.True(t, r.resumption.awaits(r.members[0]))

	values := make([]float64, r.members[2].box.Points())
	for _, old := range []rendezvous.Captured{
		{Number: -2, Copy: want.Copy, State: []byte{1}}, {Number: -1, State: []byte{1}},
		{Number: -1, Copy: &rendezvous.Copy{Rank: 1, Iterate: 60}, State: []byte{1}},
	} {
		r.receiveCopy(r.members[0], &old, values)
	}
	require.False(t, r.members[2].assigned, "none of these is the copy")
	r.receiveCopy(r.members[0], &rendezvous.Captured{Number: -1, Copy: want.Copy, State: []byte{7}}, values)
	for rank, m := range r.members {
		w := r.next(m).(*workload)
		require.EqualValues(t, 60, w.assign.Resume.Iterate)
		require.False(t, w.assign.Resume.Again)
		require.EqualValues(t, 1000, w.assign.MaxSweeps, "the iterate's sweeps count")
		require.Zero(t, w.assign.Sweeps)
		require.Equal(t, rank == 2, w.assign.Initial)
		require.Equal(t, rank == 2, w.assign.Resume.State != nil)
	}
	require.EqualValues(t, 60, r.open[0].From)
	require.Equal(t, 250*time.Millisecond, r.keepEvery().Truncate(time.Millisecond))
	require.EqualValues(t, 60, r.sweeps())
}

// Without an iterate that is known of each peer, the run begins again. Not so if only the lost leader had its starting
// values.
func TestRunBeginsAgain(t *testing.T) {
	for _, file := range []bool{false, true} {
		r := resuming(t)
		r.inherits, r.FromFile = file, file
		r.enter(held(0, 40), held(1, 60), nil)
		if file {
			require.Contains(t, r.failure.text, "the run cannot begin again")
			continue
		}
		for _, m := range r.members {
			w := r.next(m).(*workload)
			require.Equal(t, &rendezvous.Resume{Again: true}, w.assign.Resume)
			require.False(t, w.assign.Initial)
		}
		require.Zero(t, float64(r.open[0].From))
	}
}

// A survivor that still relaxes gets its work at once, as it goes back: no block is repaired, for which it could wait.
func TestARelaxingSurvivorGoesBack(t *testing.T) {
	r := resuming(t)
	r.receiveRecovery(r.members[1], rendezvous.Listen{Epoch: r.epoch, Idle: false, Holding: held(0, 60), Sweep: 70})
	r.receiveRecovery(r.members[0], rendezvous.Listen{Epoch: r.epoch, Idle: true, Holding: held(2, 60), Sweep: 70})
	r.receiveRecovery(r.members[2], rendezvous.Listen{Epoch: r.epoch, Idle: true})
	require.True(t, r.members[1].assigned)
}

// A peer that does not send the copy that it claims to have counts as lost.
func TestMissingCopy(t *testing.T) {
	for _, state := range [][]byte{nil, {1}} {
		r := resuming(t)
		r.enter(held(2, 60), held(0, 60), nil)
		r.Recover = rendezvous.RecoverOff // the loss is reported as a failure
		c := rendezvous.Captured{Number: -1, Copy: &rendezvous.Copy{Rank: 2, Iterate: 60}, State: state}
		r.receiveCopy(r.members[0], &c, make([]float64, 3))
		require.Contains(t, r.failure.text, "has no copy of the block of peer 2 at iterate 60, which it claimed to have")
	}
}

// The bound on sweeps holds in each time step, so those of the steps before do not count.
func TestBoundOnSweepsAfterALossInATimeStep(t *testing.T) {
	r := resuming(t)
	r.Recover, r.Captures = rendezvous.RecoverLocal, nil
	r.inTime = true
	r.members[2].valued = true
	r.enter(nil, nil, nil)
	require.EqualValues(t, 1000, r.next(r.members[0]).(*workload).assign.MaxSweeps)
}

// The process that has the values of a part that moves is lost, or stops, after it was asked for them: the part is then that
// of a lost peer.
func TestFormerPeerIsLostBeforeItsCopyArrives(t *testing.T) {
	for _, stops := range []bool{false, true} {
		r := resuming(t)
		from := r.members[1]
		to := &member{
			rank: 1, box: from.box, valued: true, listens: 1, control: "a:1",
			caller: caller{conn: 9, join: rendezvous.Join{Host: "h", Pid: 9}},
		}
		r.members[1], r.members[2].valued, r.open = to, true, nil
		r.handing = []*handover{{rank: 1, from: from, to: to, known: true}}
		r.members[0].listens, r.members[0].holding = 1, held(1, 40)
		r.members[2].listens, r.members[2].holding = 1, held(0, 40)
		r.handle(event{of: from, message: rendezvous.Listen{Epoch: 1, Holding: held(2, 40)}})
		require.True(t, r.resumption.awaits(from))
		require.False(t, to.assigned)
		if stops {
			for range r.ticks(2*r.PeerTimeout+StopTime) + 1 {
				r.checkRecovery()
			}
			require.Same(t, from, r.members[1], "it still has the part")
		} else {
			r.handle(event{of: from, closed: io.EOF})
		}
		require.Equal(t, 2, r.epoch)
		require.Len(t, r.losses, 1)
	}
}
