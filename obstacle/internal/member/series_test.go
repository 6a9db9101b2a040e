package member

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// stepping is a member that relaxes in time steps, and what has been sent on the connection to its leader.
type stepping struct {
	t *testing.T
	*Member
	effects []Effect
	holding []int // as the shell holds them
	got     []int
	sends   *SendEnd
	stops   bool // nothing is sent
}

func newStepping(t *testing.T, after int, lasting bool) *stepping {
	w := rendezvous.Welcome{}
	if lasting {
		w.Spec.Recover, w.Spec.Keepers = rendezvous.RecoverLocal, 3
	}
	s := &stepping{t: t, Member: New(&w, 0, false)}
	term := register.Term{Number: 1, Leader: "a", Keepers: []string{"a", "b", "c"}}
	s.step(Event{Message: rendezvous.Term{Term: term}})
	s.starts(after)
	return s
}

// starts begins to work in the epoch after a step.
func (s *stepping) starts(after int) {
	s.step(Event{Assigned: &Assigned{Epoch: s.Epoch, InTime: true, After: after}})
	s.step(Event{Message: rendezvous.Start{}})
}

// step handles an event. Then it ends every job except relaxations and transmissions.
func (s *stepping) step(o Event) {
	for _, e := range s.Step(0, o) {
		s.effects = append(s.effects, e)
		switch e := e.(type) {
		case Do:
			if e.Job != ToRelax && e.Job != ToAnswer {
				s.step(Event{Ended: &Ended{Job: e.Job, Number: e.Number}})
			}
		case BeginSteps:
			s.holding = []int{s.accepted.After}
		case Hold:
			require.Nil(s.t, s.sends, "its memory may be used again")
			if e.Drop {
				s.holding = s.holding[1:]
			}
			s.holding = append(s.holding, s.newest())
			s.step(Event{Ended: &Ended{Job: ToHold, Number: e.Number}})
		case SendEnd:
			require.Nil(s.t, s.sends, "one end at a time")
			require.Contains(s.t, s.holding, e.Step)
			if s.sends = &e; !s.stops {
				s.endSend(nil)
			}
		}
	}
}

// endSend ends what is being sent.
func (s *stepping) endSend(err error) {
	e := s.sends
	if s.sends = nil; err == nil {
		s.got = append(s.got, e.Step)
	}
	s.step(Event{Ended: &Ended{Job: ToSend, Number: e.Number, Err: err}})
}

// end ends a step, and reports whether the next one may begin.
func (s *stepping) end(m int) bool {
	s.step(Event{Step: m})
	return s.goesOn(m)
}

func (s *stepping) goesOn(m int) bool { return slices.Contains(s.holding, m) && s.ended == 0 }

// loses ends the connection to the leader, finds the next one, and returns the steps that the peer has stated.
func (s *stepping) loses() []int {
	s.effects = nil
	s.step(Event{Closed: true})
	require.Nil(s.t, s.sends)
	for _, e := range s.effects {
		if a, is := e.(Ask); is {
			s.got = nil
			s.step(Event{Asked: &Found{Address: "b"}})
			return a.Steps
		}
	}
	return nil
}

// A peer holds the ends of two steps if another process can lead the run, else of one. It ends a step when the end of the
// one before has been sent.
func TestHeldEnds(t *testing.T) {
	for _, lasting := range []bool{true, false} {
		s := newStepping(t, 3, lasting)
		require.True(t, s.sent())
		for m := 4; m <= 9; m++ {
			require.True(t, s.end(m))
			want := []int{m - 1, m}
			if !lasting {
				want = want[1:]
			}
			require.Equal(t, want, s.steps)
			require.Equal(t, want, s.holding)
		}
		require.Equal(t, []int{4, 5, 6, 7, 8, 9}, s.got)
		s.stops = true
		require.True(t, s.end(10))
		require.False(t, s.sent())
		require.False(t, s.end(11))
		s.endSend(errors.New("closed"))
		require.False(t, s.goesOn(11), "there is no leader")
	}
}

// After the loss of the leader the ends that a peer has stated remain, until it is asked for them.
func TestEndsAreSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		from int
		want []int
	}{
		"both":       {5, []int{5, 6, 7}},
		"the newest": {6, []int{6, 7}},
		"the next":   {7, []int{7}},
		"older":      {4, []int{5, 6, 7}}, // it is held elsewhere
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepping(t, 4, true)
			require.True(t, s.end(5))
			require.True(t, s.end(6))
			require.Equal(t, []int{5, 6}, s.loses())
			require.False(t, s.end(7))
			require.Equal(t, []int{5, 6}, s.loses(), "as it was stated")
			require.False(t, s.sent())
			s.step(Event{Message: rendezvous.Resend{From: c.from}})
			require.True(t, s.goesOn(7))
			require.Equal(t, []int{6, 7}, s.holding)
			require.Equal(t, c.want, s.got)
			require.True(t, s.sent())
		})
	}
}

// Work that arrived before the leader was lost begins only after the next leader has received the ends that it needs. If it
// needs none, a new epoch follows.
func TestEpochAfterTheLossOfTheLeader(t *testing.T) {
	s := newStepping(t, 4, true)
	require.True(t, s.end(5))
	require.Equal(t, []int{4, 5}, s.loses())
	require.False(t, s.end(6))
	s.loss()
	require.Equal(t, []int{4, 5}, s.holding)
	require.Equal(t, beginning, s.task)
	s.step(Event{Message: rendezvous.Resend{From: -1}})
	require.Equal(t, relaxing, s.task)
	require.True(t, s.end(3))
	require.Equal(t, []int{3}, s.got)
}

// loss begins an epoch after step 2, as a peer is lost.
func (s *stepping) loss() {
	s.step(Event{Message: rendezvous.Epoch{Epoch: s.Epoch + 1}, Facts: Facts{Halts: true}})
	s.step(Event{Ended: &Ended{Job: ToRelax, Number: s.taskJob, Err: ErrNextEpoch}})
	if s.sends == nil {
		s.starts(2)
	}
}

// Nothing of an epoch is sent after the endpoint of the next one was reported. A step that ends meanwhile is abandoned.
func TestSuspendedEnds(t *testing.T) {
	s := newStepping(t, 0, true)
	s.stops = true
	require.True(t, s.end(1))
	require.False(t, s.end(2))
	s.loss()
	require.Equal(t, opened, s.entry, "a block is being sent")
	s.endSend(errors.New("closed"))
	require.Equal(t, unassigned, s.entry)
	require.False(t, s.goesOn(2))
	s.starts(2)
	require.Equal(t, []int{2}, s.holding)
	require.Equal(t, relaxing, s.task)
}

// A step that the relaxation has abandoned before it could be held leaves no trace.
func TestAbandonedStep(t *testing.T) {
	s := newStepping(t, 4, true)
	require.True(t, s.end(5))
	effects := s.Step(0, Event{Step: 6})
	hold := effects[0].(Hold)
	require.True(t, hold.Drop)
	s.step(Event{Ended: &Ended{Job: ToHold, Number: hold.Number, Err: ErrNextEpoch}})
	require.Equal(t, []int{4, 5}, s.steps)
	require.True(t, s.sent())
}
