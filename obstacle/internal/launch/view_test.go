package launch

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stateOf returns the state of a run of n peers.
func stateOf(n int) *State {
	cuts := []int{0}
	s := &State{
		Phase: Solving, Sweeps: map[int]uint64{}, Lost: map[int]bool{}, Sessions: map[int][]rendezvous.Session{},
		Accounts: map[int]Account{}, Former: map[int]rendezvous.Traffic{}, Severed: map[int]string{},
		Progress: Progress{Elapsed: 1500 * time.Millisecond, Step: 1, Sweep: 7, Residual: 0.5},
		Term:     register.Term{Number: 1, Leader: "a:1", Keepers: []string{"a:1", "b:1", "c:1"}},
	}
	for rank := range n {
		cuts = append(cuts, rank+1)
		s.Severed[rank] = "peers 0 and 1 exchange nothing"
		s.Sweeps[rank], s.Former[rank] = uint64(rank), rendezvous.Traffic{Messages: 2}
		s.Members = append(s.Members, rendezvous.Member{Rank: rank, Host: "h", Pid: 100 + rank})
		s.Boxes = append(s.Boxes, problem.Box{Lo: [3]int{0, 0, rank}, Hi: [3]int{4, 4, rank + 1}})
		s.Sessions[rank] = []rendezvous.Session{{Peer: (rank + 1) % n, Channel: rendezvous.Channel{Name: "halo"}}}
		s.Accounts[rank] = Account{Account: rendezvous.Account{Seconds: 2, Relaxing: 1, Waiting: 0.5,
			Reads: []rendezvous.Reads{{Rank: (rank + 1) % n, Faces: 3, Sum: 4, Ages: []uint64{1, 2}}}}}
	}
	s.Spec = rendezvous.Spec{
		Problem: "membrane", N: [3]int{4, 4, n}, Partition: problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, cuts}}, Reports: true,
	}
	return s
}

// pass sends what next returns to a status, through the codec.
func pass(t *testing.T, v *views, s *State, to *Status) (bytes int) {
	t.Helper()
	for _, m := range v.next(s) {
		require.LessOrEqual(t, len(m.Ranks), rendezvous.MaxRanks)
		frame, err := rendezvous.Append(nil, m)
		require.NoError(t, err)
		got, err := rendezvous.Decode(rendezvous.KindView, frame[5:])
		require.NoError(t, err)
		view := got.(rendezvous.View)
		require.NoError(t, to.view(&view))
		bytes += len(frame)
	}
	return bytes
}

// Views give obstacle attach the status of the leader. Unchanged lists are not sent again.
func TestViewsCarryTheStatus(t *testing.T) {
	s, v, to := stateOf(40), &views{steps: 3}, &Status{}
	first := pass(t, v, s, to)
	require.Equal(t, *s, to.State())
	require.Less(t, pass(t, v, s, to), first/50, "nothing has changed")

	s.Losses = []Loss{{Rank: 39, Why: "it ended", Detected: 2, Recovered: 3, Residual: 0.5, From: 1, FromStep: 2, By: "pid 9"}}
	s.Moves = []Moved{{Rank: 1, From: "a", To: "b", At: 1, Seconds: 0.5}}
	s.Members = slices.Clone(s.Members)
	s.Members[39].Pid, s.Sweeps[39], s.Lost[3], s.Epoch = 9, 100, true, 1
	s.Term.Number, s.Term.Leader = 2, "b:1"
	require.Less(t, pass(t, v, s, to), first/2)
	require.Equal(t, *s, to.State())
	delete(s.Lost, 3)
	s.Progress.Residual = math.NaN()
	pass(t, v, s, to)
	require.Empty(t, to.State().Lost)
	require.True(t, math.IsNaN(to.State().Progress.Residual))
}

// Of a run of many peers each message stays far below its bound, however many losses there were.
func TestViewsAreBounded(t *testing.T) {
	s := stateOf(2000)
	for range 10_000 {
		s.Losses = append(s.Losses, Loss{Why: fmt.Sprintf("%0100d", 1), Recovered: nullable.NaN()})
	}
	to := &Status{}
	for _, m := range (&views{}).next(s) {
		frame, err := rendezvous.Append(nil, m)
		require.NoError(t, err)
		require.Less(t, len(frame), rendezvous.MaxBody/4)
		require.NoError(t, to.view(&m))
	}
	require.Len(t, to.State().Losses, rendezvous.MaxListed)
	require.Len(t, to.State().Accounts, 2000)
}

// A view that contradicts itself is refused.
func TestViewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(v *rendezvous.View){
		"no description":   func(v *rendezvous.View) { v.Spec = nil },
		"no grid":          func(v *rendezvous.View) { v.Spec.N[0] = 0 },
		"other cuts":       func(v *rendezvous.View) { v.Spec.Partition.Cuts[0] = []int{0, 9} },
		"one member":       func(v *rendezvous.View) { v.Members = v.Members[:1] },
		"one box":          func(v *rendezvous.View) { v.Boxes = v.Boxes[:1] },
		"rank 2 of 2":      func(v *rendezvous.View) { v.Ranks[0].Rank = 2 },
		"rank −1":          func(v *rendezvous.View) { v.Ranks[0].Rank = -1 },
		"phase 9":          func(v *rendezvous.View) { v.Phase = 9 },
		"losses no list":   func(v *rendezvous.View) { v.Losses = []byte(`{}`) },
		"moves no list":    func(v *rendezvous.View) { v.Moves = []byte(`7`) },
		"negative elapsed": func(v *rendezvous.View) { v.ElapsedMS = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			v := (&views{}).next(stateOf(2))[0]
			spoil(&v)
			require.Error(t, (&Status{}).view(&v))
		})
	}
}

// Any view is taken or refused, and what was taken is consistent.
func FuzzView(f *testing.F) {
	for n := range 3 {
		for _, v := range (&views{}).next(stateOf(n + 1)) {
			b, err := json.Marshal(v)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := rendezvous.Decode(rendezvous.KindView, b)
		if err != nil {
			return
		}
		v, s := m.(rendezvous.View), &Status{}
		if s.view(&v) != nil {
			return
		}
		state := s.State()
		peers := state.Spec.Partition.Peers()
		require.Equal(t, len(state.Members), len(state.Boxes))
		for rank := range state.Sweeps {
			require.Less(t, rank, peers)
		}
	})
}
