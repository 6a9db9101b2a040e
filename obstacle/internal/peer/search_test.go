package peer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// A second attempt to find the process that leads comes before that gives up the peer, after twice suspect.
func TestAttemptsToFindTheLeader(t *testing.T) {
	for _, suspect := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
		require.Less(t, attemptTime(suspect)+searchTime, 2*suspect)
		require.LessOrEqual(t, attemptTime(suspect), askTime)
	}
	require.Equal(t, askTime, attemptTime(0))
}

// led returns a member that a leader "a" leads, with keepers "a", "b" and "c".
func led() *member {
	m := newMember(&rendezvous.Welcome{Spec: rendezvous.Spec{Suspect: 500 * time.Millisecond, PeerTimeout: 2 * time.Second}}, true)
	m.step(0, event{message: rendezvous.Term{Term: register.Term{Number: 3, Leader: "a", Keepers: []string{"a", "b", "c"}}}})
	return m
}

// The newest term may have one keeper, since the next one takes a moment. Only the first one with several is announced.
func TestTerms(t *testing.T) {
	m := newMember(&rendezvous.Welcome{Spec: rendezvous.Spec{Suspect: time.Second}}, true)
	several, one := []string{"a", "b", "c"}, []string{"a"}
	for _, c := range []struct {
		term    register.Term
		detects bool
	}{
		{register.Term{Number: 2, Leader: "a", Keepers: one}, false},
		{register.Term{Number: 3, Leader: "a", Keepers: several}, true},
		{register.Term{Number: 2, Leader: "b", Keepers: []string{"b"}}, false},
		{register.Term{Number: 4, Leader: "a", Keepers: one}, false},
		{register.Term{Number: 5, Leader: "a", Keepers: several}, false},
		{register.Term{Number: 6, Leader: "a", Keepers: one}, false},
	} {
		effects := m.step(0, event{message: rendezvous.Term{Term: c.term}})
		require.Equal(t, c.detects, slices.Contains(effects, effect(detect{2 * time.Second})), "%+v", c.term)
	}
	require.Equal(t, "a", m.term.Leader)
}

// Each transcript holds what a peer does after the loss of its leader.
func TestSearches(t *testing.T) {
	none := errors.New("no answer")
	next := register.Term{Number: 4, Leader: "b", Keepers: []string{"b"}}
	for name, play := range map[string]func(r *transcript){
		"search, found at once": func(r *transcript) {
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(2*time.Second, "b leads", event{asked: &found{address: "b"}})
		},
		"search, a keeper leads": func(r *transcript) {
			r.handle(0, "keeper", event{keeps: "b"})
			r.handle(0, "record", event{message: rendezvous.Record{}})
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(2*time.Second, "decided", event{decided: &next})
			r.handle(3*time.Second, "b leads", event{asked: &found{address: "b"}})
			r.handle(4*time.Second, "closed", event{closed: true})
		},
		"search, the second keeper waits for its turn": func(r *transcript) {
			r.handle(0, "keeper", event{keeps: "c"})
			r.handle(0, "record", event{message: rendezvous.Record{}})
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(time.Second+100*time.Millisecond, "none", event{asked: &found{err: none}})
			r.handle(time.Second+150*time.Millisecond, "deadline", event{})
			r.handle(time.Second+250*time.Millisecond, "none", event{asked: &found{err: none}})
			r.handle(time.Second+299*time.Millisecond, "too early", event{})
			r.handle(time.Second+300*time.Millisecond, "deadline", event{})
			r.handle(2*time.Second, "not decided", event{decided: &register.Term{}})
			r.handle(3*time.Second, "none", event{asked: &found{err: none}})
			r.handle(4*time.Second, "deadline, a term is known", event{facts: facts{known: next}})
			r.handle(5*time.Second, "b leads", event{asked: &found{address: "b"}})
		},
		"search, no keepers": func(r *transcript) {
			r.handle(0, "term", event{message: rendezvous.Term{Term: register.Term{Number: 4, Keepers: []string{"a"}}}})
			r.handle(time.Second, "closed", event{closed: true})
		},
		"search, the run has failed": func(r *transcript) {
			r.handle(0, "lost", event{message: rendezvous.Lost{Why: "why"}})
			r.handle(time.Second, "closed", event{closed: true})
		},
		"search, the peer ends": func(r *transcript) {
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(time.Second, "none", event{asked: &found{err: none}})
			r.handle(time.Second, "the peer ends", event{facts: facts{over: true}})
			r.handle(time.Second, "none", event{asked: &found{err: none}, facts: facts{over: true}})
		},
		"search, refused": func(r *transcript) {
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(time.Second, "refused", event{asked: &found{err: &rendezvous.RefusedError{}}})
		},
		"search, too long": func(r *transcript) {
			r.handle(time.Second, "closed", event{closed: true})
			r.handle(6*time.Second, "none", event{asked: &found{err: none}})
			r.handle(6*time.Second+searchTime, "deadline", event{})
			r.handle(6*time.Second+2*searchTime, "none", event{asked: &found{err: none}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &transcript{member: led()}
			play(r)
			r.requireGolden(t, name)
		})
	}
}

// Where no process listens, the search ends after some attempts.
func TestNobodyListens(t *testing.T) {
	m := led()
	m.step(0, event{closed: true})
	now, attempts := time.Duration(0), 0
	for ; m.contact == asking; attempts++ {
		m.step(now, event{asked: &found{err: errNobody}})
		now, _ = m.wake()
		m.step(now, event{})
	}
	require.Equal(t, alone, m.contact)
	require.Equal(t, roundsOver+2, attempts)
	require.ErrorIs(t, m.why, errNobody)
}

// A search ends, whatever happens: with a leader, or without one at the latest one attempt after its bound. There is
// always a question to answer or a deadline.
func TestEverySearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := led()
		for _, address := range rapid.SampledFrom([][]string{nil, {"b"}, {"c"}}).Draw(t, "keeper") {
			m.step(0, event{keeps: address})
			m.step(0, event{message: rendezvous.Record{}})
		}
		now, leads := time.Second, 0
		effects := m.step(now, event{closed: true})
		for m.contact != connected && m.contact != alone {
			var question effect
			for _, e := range effects {
				switch e.(type) {
				case lead:
					leads++
				case ask, propose:
					require.Nil(t, question, "one question at a time")
					question = e
				}
			}
			o := event{facts: facts{over: rapid.IntRange(0, 50).Draw(t, "over") == 0}}
			if rapid.IntRange(0, 9).Draw(t, "term") == 0 {
				o.known = register.Term{Number: 4, Leader: "b", Keepers: []string{"b"}}
			}
			switch q := question.(type) {
			case ask:
				now += rapid.Custom(func(t *rapid.T) time.Duration {
					return time.Duration(rapid.Int64Range(0, int64(q.within)).Draw(t, "ns"))
				}).
					Draw(t, "time")
				o.asked = &found{err: errors.New("no answer")}
				if rapid.IntRange(0, 9).Draw(t, "found") == 0 {
					o.asked = &found{address: "b"}
				}
			case propose:
				require.Equal(t, m.self, q.want.Leader)
				require.Equal(t, q.base.Number+1, q.want.Number)
				now += q.within
				o.decided = rapid.SampledFrom([]*register.Term{{}, &q.want, {Number: 4, Leader: "d", Keepers: []string{"d"}}}).Draw(t, "term")
			default:
				at, is := m.wake()
				require.True(t, is)
				now = max(now, at)
			}
			effects = m.step(now, o)
		}
		require.LessOrEqual(t, now, time.Second+m.searchLimit()+2*attemptTime(m.suspect)+searchTime+voteTime)
		require.LessOrEqual(t, leads, 1)
	})
}
