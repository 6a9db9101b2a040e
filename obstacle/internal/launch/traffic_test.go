package launch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// What a process has sent counts when another one runs its part, once, also for those who follow the run.
func TestTrafficOfFormerProcesses(t *testing.T) {
	sessions := func(messages uint64) *rendezvous.Sessions {
		halo := rendezvous.Session{Channel: rendezvous.Channel{Name: "halo/0-1", MessagesSent: messages, BytesSent: 8 * messages}}
		other := rendezvous.Session{Channel: rendezvous.Channel{Name: "agree/0-1", MessagesSent: 1000}}
		return &rendezvous.Sessions{
			Sessions: []rendezvous.Session{halo, other}, Former: rendezvous.Traffic{Messages: 3, Bytes: 24},
		}
	}
	status := &Status{}
	sum := func(s State) (out rendezvous.Traffic) {
		out = s.Gone
		for rank := range 2 {
			out.Add(s.Former[rank])
			for i := range s.Sessions[rank] {
				out.AddSession(&s.Sessions[rank][i])
			}
		}
		return out
	}
	status.update(func(s *State) { s.report(0, sessions(5)); s.report(1, sessions(7)) })
	require.Equal(t, rendezvous.Traffic{Messages: 18, Bytes: 144}, sum(status.State()))
	status.update(func(s *State) { s.lose(1) })
	require.Equal(t, rendezvous.Traffic{Messages: 18, Bytes: 144}, sum(status.State()))
	status.update(func(s *State) { s.lose(1) }) // its successor, before it has reported
	status.update(func(s *State) { s.report(1, sessions(1)) })
	require.Equal(t, rendezvous.Traffic{Messages: 22, Bytes: 176}, sum(status.State()))

	followed, sent := &Status{}, views{}
	state := status.State()
	state.Spec = stateOf(2).Spec
	for _, v := range sent.next(&state) {
		require.NoError(t, followed.view(&v))
	}
	require.Equal(t, sum(state), sum(followed.State()))
	status.update(func(s *State) { s.lose(0) })
	next := status.State()
	next.Spec = state.Spec
	for _, v := range sent.next(&next) {
		require.NoError(t, followed.view(&v))
	}
	require.Equal(t, sum(next), sum(followed.State()))
}
