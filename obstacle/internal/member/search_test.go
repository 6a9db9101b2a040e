package member

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
		require.LessOrEqual(t, attemptTime(suspect), AskTime)
	}
	require.Equal(t, AskTime, attemptTime(0))
}

// led returns a member that a leader "a" leads, with keepers "a", "b" and "c".
func led() *Member {
	m := New(&rendezvous.Welcome{Spec: rendezvous.Spec{Suspect: 500 * time.Millisecond, PeerTimeout: 2 * time.Second}}, 7*time.Second, true)
	m.Step(0, Event{Message: rendezvous.Term{Term: register.Term{Number: 3, Leader: "a", Keepers: []string{"a", "b", "c"}}}})
	return m
}

// The newest term may have one keeper, since the next one takes a moment. Only the first one with several is announced.
func TestTerms(t *testing.T) {
	m := New(&rendezvous.Welcome{Spec: rendezvous.Spec{Suspect: time.Second}}, 7*time.Second, true)
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
		effects := m.Step(0, Event{Message: rendezvous.Term{Term: c.term}})
		require.Equal(t, c.detects, slices.Contains(effects, Effect(Detect{2 * time.Second})), "%+v", c.term)
	}
	require.Equal(t, "a", m.Term.Leader)
}

// Each transcript holds what a peer does after the loss of its leader.
func TestSearches(t *testing.T) {
	none := errors.New("no answer")
	next := register.Term{Number: 4, Leader: "b", Keepers: []string{"b"}}
	for name, play := range map[string]func(r *transcript){
		"search, found at once": func(r *transcript) {
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(2*time.Second, "b leads", Event{Asked: &Found{Address: "b"}})
		},
		"search, a keeper leads": func(r *transcript) {
			r.handle(0, "keeper", Event{Keeps: "b"})
			r.handle(0, "record", Event{Message: rendezvous.Record{}})
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(2*time.Second, "decided", Event{Decided: &next})
			r.handle(3*time.Second, "b leads", Event{Asked: &Found{Address: "b"}})
			r.handle(4*time.Second, "closed", Event{Closed: true})
		},
		"search, the second keeper waits for its turn": func(r *transcript) {
			r.handle(0, "keeper", Event{Keeps: "c"})
			r.handle(0, "record", Event{Message: rendezvous.Record{}})
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(time.Second+100*time.Millisecond, "none", Event{Asked: &Found{Err: none}})
			r.handle(time.Second+150*time.Millisecond, "deadline", Event{})
			r.handle(time.Second+250*time.Millisecond, "none", Event{Asked: &Found{Err: none}})
			r.handle(time.Second+299*time.Millisecond, "too early", Event{})
			r.handle(time.Second+300*time.Millisecond, "deadline", Event{})
			r.handle(2*time.Second, "not decided", Event{Decided: &register.Term{}})
			r.handle(3*time.Second, "none", Event{Asked: &Found{Err: none}})
			r.handle(4*time.Second, "deadline, a term is known", Event{Facts: Facts{Known: next}})
			r.handle(5*time.Second, "b leads", Event{Asked: &Found{Address: "b"}})
		},
		"search, no keepers": func(r *transcript) {
			r.handle(0, "term", Event{Message: rendezvous.Term{Term: register.Term{Number: 4, Keepers: []string{"a"}}}})
			r.handle(time.Second, "closed", Event{Closed: true})
		},
		"search, the run has failed": func(r *transcript) {
			r.handle(0, "lost", Event{Message: rendezvous.Lost{Why: "why"}})
			r.handle(time.Second, "closed", Event{Closed: true})
		},
		"search, the peer ends": func(r *transcript) {
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(time.Second, "none", Event{Asked: &Found{Err: none}})
			r.handle(time.Second, "the peer ends", Event{Facts: Facts{Over: true}})
			r.handle(time.Second, "none", Event{Asked: &Found{Err: none}, Facts: Facts{Over: true}})
		},
		"search, refused": func(r *transcript) {
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(time.Second, "refused", Event{Asked: &Found{Err: &rendezvous.RefusedError{}}})
		},
		"search, too long": func(r *transcript) {
			r.handle(time.Second, "closed", Event{Closed: true})
			r.handle(6*time.Second, "none", Event{Asked: &Found{Err: none}})
			r.handle(6*time.Second+searchTime, "deadline", Event{})
			r.handle(6*time.Second+2*searchTime, "none", Event{Asked: &Found{Err: none}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &transcript{Member: led()}
			play(r)
			r.requireGolden(t, name)
		})
	}
}

// Where no process listens, the search ends after some attempts.
func TestNobodyListens(t *testing.T) {
	m := led()
	m.Step(0, Event{Closed: true})
	now, attempts := time.Duration(0), 0
	for ; m.contact == asking; attempts++ {
		m.Step(now, Event{Asked: &Found{Err: ErrNobody}})
		now, _ = m.Wake()
		m.Step(now, Event{})
	}
	require.Equal(t, alone, m.contact)
	require.Equal(t, roundsOver+2, attempts)
	require.ErrorIs(t, m.Why, ErrNobody)
}

// A search ends, whatever happens: with a leader, or without one at the latest one attempt after its bound. There is
// always a question to answer or a deadline.
func TestEverySearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := led()
		for _, address := range rapid.SampledFrom([][]string{nil, {"b"}, {"c"}}).Draw(t, "keeper") {
			m.Step(0, Event{Keeps: address})
			m.Step(0, Event{Message: rendezvous.Record{}})
		}
		now, leads := time.Second, 0
		effects := m.Step(now, Event{Closed: true})
		for m.contact != connected && m.contact != alone {
			var question Effect
			for _, e := range effects {
				switch e.(type) {
				case Lead:
					leads++
				case Ask, Propose:
					require.Nil(t, question, "one question at a time")
					question = e
				}
			}
			o := Event{Facts: Facts{Over: rapid.IntRange(0, 50).Draw(t, "over") == 0}}
			if rapid.IntRange(0, 9).Draw(t, "term") == 0 {
				o.Known = register.Term{Number: 4, Leader: "b", Keepers: []string{"b"}}
			}
			switch q := question.(type) {
			case Ask:
				now += rapid.Custom(func(t *rapid.T) time.Duration {
					return time.Duration(rapid.Int64Range(0, int64(q.Within)).Draw(t, "ns"))
				}).
					Draw(t, "time")
				o.Asked = &Found{Err: errors.New("no answer")}
				if rapid.IntRange(0, 9).Draw(t, "found") == 0 {
					o.Asked = &Found{Address: "b"}
				}
			case Propose:
				require.Equal(t, m.self, q.Want.Leader)
				require.Equal(t, q.Base.Number+1, q.Want.Number)
				now += q.Within
				o.Decided = rapid.SampledFrom([]*register.Term{{}, &q.Want, {Number: 4, Leader: "d", Keepers: []string{"d"}}}).Draw(t, "term")
			default:
				at, is := m.Wake()
				require.True(t, is)
				now = max(now, at)
			}
			effects = m.Step(now, o)
		}
		require.LessOrEqual(t, now, time.Second+m.searchLimit()+2*attemptTime(m.suspect)+searchTime+voteTime)
		require.LessOrEqual(t, leads, 1)
	})
}

// An error of an epoch that the loss of another peer may have caused ends the peer only if no newer epoch begins soon.
func TestErrorsOfALoss(t *testing.T) {
	why := errors.New("peer 1 was lost")
	for name, c := range map[string]struct {
		next Event
		at   time.Duration
		want Outcome
	}{
		"a newer epoch":  {Event{Message: rendezvous.Epoch{Epoch: 1}}, lossTime / 2, InProgress},
		"too early":      {Event{}, lossTime - 1, InProgress},
		"none":           {Event{}, lossTime, Failed},
		"the run fails":  {Event{Message: rendezvous.Lost{Why: "why"}}, 0, Failed},
		"the leader has": {Event{Closed: true}, 0, Failed},
	} {
		w := rendezvous.Welcome{}
		w.Spec.Recover = rendezvous.RecoverLocal
		m := New(&w, 0, false)
		effects := m.Step(0, Event{Assigned: &Assigned{}})
		connect := effects[len(effects)-1].(Do)
		m.Step(0, Event{Ended: &Ended{connect.Job, connect.Number, why}, Facts: Facts{Loss: true}})
		require.Equal(t, InProgress, m.Outcome, name)
		at, is := m.Wake()
		require.True(t, is)
		require.Equal(t, lossTime, at)
		m.Step(c.at, c.next)
		require.Equal(t, c.want, m.Outcome, name)
	}
}

// A relaxation that is to end, and does not, does not keep the process.
func TestRelaxationsThatDoNotReturn(t *testing.T) {
	const limit = 3 * time.Second
	for name, c := range map[string]struct {
		why  Event // that it is to end
		next Event // after that
		at   time.Duration
		want Outcome
	}{
		"the run fails":   {Event{Message: rendezvous.Lost{Why: "why"}}, Event{}, limit, Failed},
		"a newer epoch":   {Event{Message: rendezvous.Epoch{Epoch: 1}, Facts: Facts{Halts: true}}, Event{}, limit, Failed},
		"the leader goes": {Event{Message: rendezvous.Bye{}}, Event{}, limit, Failed},
		"too early":       {Event{Message: rendezvous.Lost{Why: "why"}}, Event{}, limit - 1, InProgress},
		"it ends":         {Event{Message: rendezvous.Lost{Why: "why"}}, Event{Ended: &Ended{Job: ToRelax}}, limit, InProgress},
		"it may go on":    {Event{}, Event{}, 9 * limit, InProgress},
		"to stop takes":   {Event{Request: ToStop}, Event{}, 9 * limit, InProgress}, // as long as the peers agree
	} {
		w := rendezvous.Welcome{}
		w.Spec.Recover, w.Spec.PeerTimeout = rendezvous.RecoverLocal, limit
		m := New(&w, 0, false)
		effects := m.Step(0, Event{Assigned: &Assigned{Epoch: 0, Box: own}})
		m.Step(0, Event{Message: rendezvous.Start{}})
		for m.task != relaxing {
			job := effects[len(effects)-1].(Do)
			effects = m.Step(0, Event{Ended: &Ended{Job: job.Job, Number: job.Number}})
		}
		_, is := m.Wake()
		require.False(t, is, name)
		m.Step(0, c.why)
		if c.next.Ended != nil {
			c.next.Ended.Number = m.taskJob
		}
		m.Step(c.at, c.next)
		require.Equal(t, c.want, m.Outcome, name)
		if c.want == Failed {
			require.ErrorIs(t, m.Failure, ErrRelaxes, name)
		}
	}
}
