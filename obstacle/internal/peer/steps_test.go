package peer

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// stepping is the ends of a peer with a box of two points, and what it has sent.
type stepping struct {
	*ends
	t   *testing.T
	ctx context.Context
	box problem.Box
}

func newStepping(t *testing.T) *stepping {
	s := &stepping{ends: newEnds(), t: t, ctx: t.Context(), box: problem.Box{Hi: [3]int{2, 1, 1}}}
	go s.send(t.Context())
	return s
}

// leads returns a connection to a process that leads the run, and what has arrived there: the numbers of steps, each
// with the first value of its block. If it reads nothing, the peer cannot send.
func (s *stepping) leads(reads bool) (conn *rendezvous.Conn, got *[][2]int) {
	here, there := net.Pipe()
	s.t.Cleanup(func() { here.Close(); there.Close() })
	conn, got = rendezvous.NewConn(here, 0), &[][2]int{}
	go func() {
		other, value := rendezvous.NewConn(there, 0), 0
		for reads {
			m, err := other.Receive(rendezvous.KindChunk, rendezvous.KindStep)
			if err != nil {
				return
			}
			switch m := m.(type) {
			case rendezvous.Chunk:
				u := make([]float64, 2)
				blocks.Decode(u, m.Data)
				value = int(u[0])
			case rendezvous.Step:
				*got = append(*got, [2]int{m.Step, value})
			}
		}
	}()
	return conn, got
}

// starts begins an epoch after a step.
func (s *stepping) starts(conn *rendezvous.Conn, after int, lasting bool) {
	w, run := &work{conn: conn}, &rendezvous.Spec{}
	if lasting {
		run.Recover, run.Keepers = rendezvous.RecoverLocal, 3
	}
	if w.config.After = after; after > 0 {
		w.config.Initial = slices.Repeat([]float64{float64(10 * after)}, 2)
	}
	require.NoError(s.t, s.begin(s.ctx, w, run, s.box))
}

// end ends a step, whose values are ten times its number, and reports whether the next one may begin.
func (s *stepping) end(m int) (goesOn func() bool) {
	over := make(chan error, 1)
	go func() {
		over <- s.step(s.ctx, iterate.StepResult{Step: m}, s.box, func(dst []float64) {
			for i := range dst {
				dst[i] = float64(10 * m)
			}
		})
	}()
	return func() bool {
		synctest.Wait()
		select {
		case err := <-over:
			require.NoError(s.t, err)
			return true
		default:
			return false
		}
	}
}

// steps returns the steps that are held.
func (s *stepping) steps() (out []int) {
	for _, e := range s.held {
		require.Equal(s.t, float64(10*e.Step), e.u[0])
		out = append(out, e.Step)
	}
	return out
}

// A peer holds the ends of two steps if another process can lead the run, else of one. It ends a step when the end of the
// one before has been sent.
func TestHeldEnds(t *testing.T) {
	for _, lasting := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newStepping(t)
			conn, got := s.leads(true)
			s.starts(conn, 3, lasting)
			all, _ := s.sent(conn)
			require.True(t, all)
			for m := 4; m <= 9; m++ {
				require.True(t, s.end(m)())
				want := []int{m - 1, m}
				if !lasting {
					want = want[1:]
				}
				require.Equal(t, want, s.steps())
			}
			require.Equal(t, [][2]int{{4, 40}, {5, 50}, {6, 60}, {7, 70}, {8, 80}, {9, 90}}, *got)
			slow, _ := s.leads(false)
			s.starts(slow, 3, lasting)
			require.True(t, s.end(4)())
			all, _ = s.sent(slow)
			require.False(t, all)
			waits := s.end(5)
			require.False(t, waits())
			slow.Close()
			require.False(t, waits(), "there is no leader")
		})
	}
}

// After the loss of the leader the ends that a peer has stated remain, until it is asked for them.
func TestEndsAreSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		from int
		want [][2]int
	}{
		"both":       {5, [][2]int{{5, 50}, {6, 60}, {7, 70}}},
		"the newest": {6, [][2]int{{6, 60}, {7, 70}}},
		"the next":   {7, [][2]int{{7, 70}}},
		"older":      {4, [][2]int{{5, 50}, {6, 60}, {7, 70}}}, // it is held elsewhere
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepping(t)
				lost, _ := s.leads(true)
				s.starts(lost, 4, true)
				require.True(t, s.end(5)())
				require.True(t, s.end(6)())
				require.Equal(t, []int{5, 6}, s.freeze())
				waits := s.end(7)
				require.False(t, waits())
				require.Equal(t, []int{5, 6}, s.freeze(), "as it was stated")
				lost.Close()
				conn, got := s.leads(true)
				all, _ := s.sent(conn)
				require.False(t, all)
				s.resend(conn, c.from)
				require.True(t, waits())
				require.Equal(t, []int{6, 7}, s.steps())
				synctest.Wait()
				require.Equal(t, c.want, *got)
				all, _ = s.sent(conn)
				require.True(t, all)
			})
		})
	}
}

// Work that has come before the loss of the leader is not begun before the next leader has the ends that it needs. If it
// needs none, a new epoch follows.
func TestEpochAfterTheLossOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStepping(t)
		lost, _ := s.leads(true)
		s.starts(lost, 4, true)
		require.True(t, s.end(5)())
		require.Equal(t, []int{4, 5}, s.freeze())
		epoch, newer := context.WithCancel(t.Context())
		var errs [2]error
		go func() { errs[0] = s.begin(epoch, &work{conn: lost}, &rendezvous.Spec{}, s.box) }()
		go func() { errs[1] = s.step(epoch, iterate.StepResult{Step: 6}, s.box, func([]float64) {}) }()
		synctest.Wait()
		require.Equal(t, []int{4, 5}, s.steps())
		newer()
		synctest.Wait()
		require.Equal(t, [2]error{context.Canceled, runner.ErrAbandoned}, errs)
		conn, got := s.leads(true)
		s.resend(conn, -1)
		s.suspend()
		s.starts(conn, 2, true)
		require.True(t, s.end(3)())
		synctest.Wait()
		require.Equal(t, [][2]int{{3, 30}}, *got)
	})
}

// Nothing of an epoch is sent after suspend has returned.
func TestSuspendedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStepping(t)
		slow, _ := s.leads(false)
		s.starts(slow, 0, true)
		require.True(t, s.end(1)())
		done := false
		go func() { s.suspend(); done = true }()
		synctest.Wait()
		require.False(t, done, "a block is being sent")
		slow.Close()
		synctest.Wait()
		require.True(t, done)
		require.False(t, s.end(2)())
	})
}
