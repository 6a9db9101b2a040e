package launch

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// inherited returns a run of two peers with six time steps whose leader was lost in epoch 0. Peers that hold steps have
// returned.
func inherited(t *testing.T, held ...[]int) *shell {
	t.Helper()
	s, cut := stepsOf(t, 6, nil)
	r := shellOf(t, watched(time.Minute, len(held)))
	r.Problem, r.Partition, r.Recover = s.problem, cut, rendezvous.RecoverLocal
	r.series, r.inTime = emptySeries(&r.Plan), true
	r.passSteps()
	for rank, m := range r.members {
		m.box, m.steps, m.valued = cut.Box(iterate.Rank(rank)), held[rank], true
		if held[rank] != nil {
			m.conn = connection(1 + rank)
		}
	}
	return r
}

// passSteps executes the effects on time steps, and notes which ends have arrived.
func (s *shell) passSteps() {
	s.effects = slices.DeleteFunc(s.effects, func(e effect) bool {
		switch e.(type) {
		case beginSteps, collectSteps, restartSteps:
			s.perform(e)
			return true
		}
		return false
	})
	s.steps = s.series.known()
	for ; len(s.answers) > 0; s.answers = s.answers[1:] {
		o := s.answers[0]
		o.steps = s.series.known()
		s.handle(o)
	}
}

// copyOf returns a copy of the block of a peer at the end of a step, whose values are all v.
func copyOf(r *shell, rank, step int, v float64) End {
	b := r.Partition.Box(iterate.Rank(rank))
	return End{Rank: rank, Step: step, Box: b, U: slices.Repeat([]float64{v}, b.Points())}
}

// askedFrom returns from which step the peers that have returned are asked for their ends.
func askedFrom(t *testing.T, r *shell) (from int) {
	t.Helper()
	from = -2
	for _, m := range r.members {
		if m.conn == 0 {
			continue
		}
		got := (r.next(m)).(rendezvous.Resend).From
		require.True(t, from == -2 || from == got)
		from = got
	}
	return from
}

// A run goes on with the oldest time step that every peer holds, or of which this process holds a copy. Otherwise it
// begins again.
func TestStepAfterTheLossOfTheLeader(t *testing.T) {
	for name, c := range map[string]struct {
		held   [2][]int
		copies []int // steps of copies of the block of peer 1
		file   bool  // the starting values are those of a file
		from   int
		known  bool
		first  int // step whose end is the first that is known
		fails  bool
	}{
		"all have ended the same step":         {held: [2][]int{{4, 5}, {4, 5}}, from: 4, known: true, first: 4},
		"one is ahead":                         {held: [2][]int{{4, 5}, {3, 4}}, from: 4, known: true, first: 4},
		"one has begun an epoch":               {held: [2][]int{{4, 5}, {4}}, from: 4, known: true, first: 4},
		"all have ended the last step":         {held: [2][]int{{5, 6}, {5, 6}}, from: 5, known: true, first: 5},
		"the first step":                       {held: [2][]int{{0}, {0, 1}}, from: 1, known: true},
		"the first step after a file":          {held: [2][]int{{0}, {0, 1}}, file: true, known: true},
		"one was lost":                         {held: [2][]int{{4, 5}, nil}, from: -1},
		"one has nothing":                      {held: [2][]int{{4, 5}, {}}, from: -1},
		"one was lost, with a copy":            {held: [2][]int{{4, 5}, nil}, copies: []int{3, 4}, from: 4, known: true, first: 4},
		"one has nothing, with a copy":         {held: [2][]int{{4, 5}, {}}, copies: []int{4, 5}, from: 4, known: true, first: 4},
		"one was lost, with an old copy":       {held: [2][]int{{4, 5}, nil}, copies: []int{2, 3}, from: -1},
		"one was lost, the start was a file's": {held: [2][]int{{4, 5}, nil}, file: true, from: -1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := inherited(t, c.held[0], c.held[1])
			r.inherits, r.FromFile = true, c.file
			for _, step := range c.copies {
				r.copies = append(r.copies, copyOf(r, 1, step, float64(step)))
			}
			require.Equal(t, c.known, r.resumeSteps())
			r.passSteps()
			if c.fails {
				require.Contains(t, r.failure.text, "the run cannot begin again: the starting values were known only to")
				require.IsType(t, rendezvous.Lost{}, r.next(r.members[0]))
				var o Outcome
				r.series.summarize(&o)
				require.Nil(t, o.U)
				require.Equal(t, Failed, o.Reason)
				return
			}
			require.Nil(t, r.failure)
			require.Equal(t, c.from, askedFrom(t, r))
			require.Equal(t, c.first, r.series.first)
			require.Equal(t, c.first > 0 || c.file, len(r.steps.missing) > 0)
			for rank := range r.members { // blocks of a run that begins again belong to the next epoch
				require.Equal(t, c.from < 0, r.series.suspended[rank])
			}
		})
	}
}

// Peers send the ends of the last steps again. The answer has what follows from them.
func TestStepsAreCollected(t *testing.T) {
	r := inherited(t, []int{3, 4}, []int{4, 5})
	require.True(t, r.resumeSteps())
	r.passSteps()
	s := r.series
	var o Outcome
	require.NoError(t, sendEnd(s, r.Partition, 0, 4, 4, 1e-7))
	s.summarize(&o)
	require.Nil(t, o.U, "one block has not arrived")
	require.Equal(t, []int{1}, s.known().missing)
	require.NoError(t, sendEnd(s, r.Partition, 1, 4, -4, 1e-7))
	require.Empty(t, s.known().missing)
	s.summarize(&o)
	require.Equal(t, []float64{4, 4, -4, -4}, o.U)
	require.Equal(t, 4, o.Steps)
	require.Equal(t, 5, o.FirstStep)
	require.Empty(t, o.StepList, "its residual cannot be computed without the step before")
	require.Zero(t, o.Last.Step)
	require.NoError(t, sendEnd(s, r.Partition, 1, 5, -5, 1e-8))
	require.ErrorContains(t, sendEnd(s, r.Partition, 0, 6, 6, 1e-8), "unexpected end of time step 6: the next is 5")
	require.NoError(t, sendEnd(s, r.Partition, 0, 5, 5, 1e-8))
	s.summarize(&o)
	require.Equal(t, Pair{5, []float64{4, 4, -4, -4}, []float64{5, 5, -5, -5}}, o.Last)
	require.Equal(t, o.Last, o.Worst)
	require.Len(t, o.StepList, 1)
}

// An epoch waits for the end of the step after which it begins. If a peer is lost before it has sent its block, the run
// begins again.
func TestEpochWaitsForTheEndOfAStep(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		r := inherited(t, []int{3, 4}, []int{3, 4})
		require.True(t, r.resumeSteps())
		r.passSteps()
		if arrived {
			require.NoError(t, sendEnd(r.series, r.Partition, 1, 3, -3, 1e-7))
		}
		r.passSteps()
		r.lose(r.members[1], failure{closed, 1, "lost"})
		r.passSteps()
		if arrived {
			require.True(t, r.held())
			require.Zero(t, r.epoch)
			require.NoError(t, sendEnd(r.series, r.Partition, 0, 3, 3, 1e-7))
			r.passSteps()
			r.stepArrived()
			r.passSteps()
		}
		require.False(t, r.held())
		require.Equal(t, 1, r.epoch)
		require.Len(t, r.losses, 1)
		want, at := []float64{3, 3, -3, -3}, 3
		if !arrived {
			first, _ := stepsOf(t, 6, nil)
			want, at = first.newest(), 0
		}
		require.Equal(t, want, r.series.newest())
		require.Equal(t, at, r.after)
		require.EqualValues(t, at, r.losses[0].FromStep)
		require.Nil(t, r.failure)
	}
}

// A peer that never sends the end for which an epoch waits is lost.
func TestEndThatIsNotSent(t *testing.T) {
	r := inherited(t, []int{3, 4}, []int{3, 4})
	require.True(t, r.resumeSteps())
	r.passSteps()
	require.NoError(t, sendEnd(r.series, r.Partition, 1, 3, -3, 1e-7))
	r.passSteps()
	r.nextEpoch()
	for range r.ticks(leastRepair) {
		r.checkKeepers()
	}
	require.Empty(t, r.losses)
	r.checkKeepers()
	require.Len(t, r.losses, 1)
	require.Contains(t, r.losses[0].Why, "has not sent the end of its time step in time")
	r.passSteps()
	require.Zero(t, r.after, "its block is not known")
}

// The blocks of lost peers are those of the copies.
func TestStepOfACopy(t *testing.T) {
	r := inherited(t, []int{3, 4}, nil)
	r.copies = []End{copyOf(r, 1, 3, -3), copyOf(r, 1, 4, -4)}
	require.True(t, r.resumeSteps())
	r.passSteps()
	require.Equal(t, []int{0}, r.steps.missing)
	require.NoError(t, sendEnd(r.series, r.Partition, 0, 3, 3, 1e-7))
	require.Equal(t, []float64{3, 3, -3, -3}, r.series.newest())
}

// Another keeper gets the blocks of the peers that are lost if this process or its host is.
func TestCopiesForAnotherKeeper(t *testing.T) {
	r := inherited(t, []int{3, 4}, []int{3, 4})
	own := r.self
	host, pid, space := own.host, own.pid, own.space
	require.True(t, r.resumeSteps())
	r.passSteps()
	for rank, m := range r.members {
		r.next(m)
		require.NoError(t, sendEnd(r.series, r.Partition, rank, 3, 3-6*float64(rank), 1e-7))
	}
	keeper := r.members[1]
	l := r.connect(keeper, idle(t))
	r.connect(r.members[0], idle(t))
	keeper.keeps, r.term.Keepers = "k", []string{"l", "k"}
	for name, c := range map[string]struct {
		peer, keeper rendezvous.Join
		copied       bool
	}{
		"this process": {rendezvous.Join{Host: host, Pid: pid, PidSpace: space}, rendezvous.Join{Host: host, Pid: pid + 1}, true},
		"a process of this number in a container": {
			rendezvous.Join{Host: host, Pid: pid, PidSpace: space + 1}, rendezvous.Join{Host: host, Pid: pid + 2}, false},
		"this host":               {rendezvous.Join{Host: host, Pid: pid + 1}, rendezvous.Join{Host: "other"}, true},
		"this host, as a keeper":  {rendezvous.Join{Host: host, Pid: pid + 1}, rendezvous.Join{Host: host, Pid: pid + 2}, false},
		"another host":            {rendezvous.Join{Host: "third"}, rendezvous.Join{Host: "other"}, false},
		"the process of a keeper": {rendezvous.Join{Host: "other"}, rendezvous.Join{Host: "other"}, false},
	} {
		r.passed = 0
		l.passing.Store(false)
		r.members[0].join, keeper.join = c.peer, c.keeper
		r.passSteps()
		r.stepArrived()
		r.execute()
		require.Len(t, l.out, map[bool]int{true: 1}[c.copied], name)
		require.Empty(t, r.links[r.members[0].conn].out, "it is no keeper")
		if c.copied {
			r.passed = 0
			r.passSteps()
			r.stepArrived()
			r.execute()
			require.Len(t, l.out, 1, "it gets those of the newest step")
			c := (<-l.out).(copies)
			require.Equal(t, []End{copyOf(r, 0, 3, 3)}, r.series.ends(c.ranks))
			there := idle(t)
			there.Close()
			require.Error(t, c.send(&link{Conn: rendezvous.NewConn(there, 0)}))
		}
	}
}

// Blocks that are still under way when an epoch begins are dropped, whatever step they are of.
func TestBlocksBeforeTheEpoch(t *testing.T) {
	s, cut := stepsOf(t, 6, nil)
	s.restart(1)
	size := blocks.Bytes(cut.Box(0))
	require.NoError(t, s.put(0, 0, make([]byte, size)))
	require.NoError(t, s.complete(0, rendezvous.Step{Step: 1}, size))
	require.NoError(t, s.complete(0, rendezvous.Step{Step: 2}, size))
	s.resume(0, 0)
	require.NoError(t, s.complete(0, rendezvous.Step{Step: 3}, size), "the peer has reported a former epoch")
	s.resume(0, 1)
	require.ErrorContains(t, s.complete(0, rendezvous.Step{Step: 3}, size), "unexpected end of time step 3: the next is 1")
	require.Zero(t, s.arrived)
}

// The end of a time step that a peer sends whose part has moved does not count: it is the turn of the peer that has the part.
func TestEndsOfADisplacedPeer(t *testing.T) {
	for displaced, arrived := range map[bool]int{true: 0, false: 1} {
		series, cut := stepsOf(t, 3, nil)
		r := shellOf(t, watched(time.Minute, 2))
		r.Partition, r.series, r.inTime = cut, series, true
		var frames []byte
		for _, m := range []rendezvous.Message{
			rendezvous.Chunk{Stream: rendezvous.StreamStep, Data: make([]byte, blocks.Bytes(cut.Box(0)))},
			rendezvous.Step{Step: 1},
		} {
			var err error
			frames, err = rendezvous.Append(frames, m)
			require.NoError(t, err)
		}
		l := r.connect(r.members[0], stream{Reader: bytes.NewReader(frames)})
		l.displaced.Store(displaced)
		series.suspended[0] = false
		r.serve(r.members[0], l)
		require.Equal(t, arrived, series.arrived)
		require.Len(t, r.inputs, 1+arrived)
	}
}
