package p2psap

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// checkTimers compares a node's deadlines with those of a visit of all sessions and peers. The peers'
// deadline may be too early: frames postpone it.
func checkTimers(t require.TestingT, n *Node) {
	d := n.Deadline()
	sessions := microproto.Never
	for _, s := range n.sessions {
		if s != nil {
			sessions = min(sessions, s.deadline())
		}
	}
	if first := n.timers.First(); sessions == first && n.peersDue <= n.associations.Deadline() &&
		d == min(first, n.peersDue) {
		return // require for every step of a world would take most of the time
	}
	require.Equal(t, sessions, n.timers.First(), "%s forgets, or wakes for nothing", n.Name())
	require.LessOrEqual(t, n.peersDue, n.associations.Deadline(), "%s forgets a peer", n.Name())
	require.Equal(t, min(n.timers.First(), n.peersDue), d)
}

// The deadlines behave like a list that is searched from end to end.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a timers
		model := map[int32]microproto.Instant{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "what") > 0 {
				place, when := rapid.IntRange(0, 20).Draw(t, "place"), microproto.Instant(rapid.IntRange(0, 30).Draw(t, "when"))
				if when == 0 {
					when = microproto.Never
				}
				if a.Set(int32(place), when); when == microproto.Never {
					delete(model, int32(place))
				} else {
					model[int32(place)] = when
				}
			} else {
				now := microproto.Instant(rapid.IntRange(0, 30).Draw(t, "now"))
				var due []int32
				for place, when := range model {
					if when <= now {
						due = append(due, place)
						delete(model, place)
					}
				}
				slices.Sort(due)
				require.Equal(t, due, append([]int32(nil), a.popDue(now)...))
			}
			first := microproto.Never
			for _, when := range model {
				first = min(first, when)
			}
			require.Equal(t, first, a.First())
		}
	})
}

// manySessions opens sessions between two nodes.
func manySessions(t *testing.T, count int) (w *world, a, b *worldNode, ids [2][]SessionID) {
	w = newWorld(t, 1)
	a, b = w.add("a", nil), w.add("b", nil)
	w.connect()
	w.run(time.Second)
	for i := range count {
		o := OpenOptions{Name: fmt.Sprint("s", i), Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{Tag: 1, Length: 5}}}
		for k, n := range []*worldNode{a, b} {
			id, err := n.Open(w.now, []string{"b", "a"}[k], o)
			require.NoError(t, err)
			ids[k] = append(ids[k], id)
		}
		w.settle()
	}
	w.run(time.Second)
	for _, id := range ids[0] {
		require.Equal(t, SessionOpen, a.state(id))
	}
	return w, a, b, ids
}

// With a thousand sessions, a session whose timer is due causes no visit of the others.
func TestIdleSessionsAreNotVisited(t *testing.T) {
	w, a, _, ids := manySessions(t, 1000)
	busy := a.session(ids[0][500])
	_, err := a.Send(w.now, busy.id, 1, 1, []byte("there"))
	require.NoError(t, err)
	checkTimers(t, a.Node)
	require.False(t, a.reschedule, "to send plans one session anew")
	// Those that are not due are not even looked at.
	for i, s := range a.sessions {
		if s != busy {
			a.sessions[i] = nil
		}
	}
	when := a.Deadline()
	a.Advance(when)
	require.Greater(t, a.Deadline(), when)
}

func BenchmarkDeadlineOfManySessions(b *testing.B) {
	for _, count := range []int{1, 1000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			n := Node{peersDue: microproto.Never}
			for i := range count {
				s := &session{id: SessionID(1<<16 | i), state: SessionLingering, lingerUntil: microproto.Instant(1000 + i)}
				n.sessions = append(n.sessions, s)
				n.schedule(s)
			}
			s := n.sessions[count/2]
			for b.Loop() {
				s.lingerUntil += 100
				n.schedule(s)
				_ = n.Deadline()
			}
		})
	}
}
