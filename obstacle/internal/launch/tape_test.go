package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tape holds the events of a run with real connections and their effects. Another run decides the same by the events alone.
type tape struct {
	s      *shell
	first  []*member
	events []taped
}

type taped struct {
	now     time.Duration
	event   event
	effects []string
	members []*member // after the event, for the other run's
}

func newTape(s *shell) *tape {
	t := &tape{s: s, first: s.everyone()}
	s.observer = func(now time.Duration, o *event, effects []effect) {
		t.events = append(t.events, taped{now, *o, texts(o, effects), s.everyone()})
	}
	return t
}

// texts returns those of an event and its effects.
func texts(o *event, effects []effect) (out []string) {
	out = append(out, eventText(*o))
	for _, e := range effects {
		out = append(out, effectText(e))
	}
	return out
}

// everyone returns all peers of a run in a fixed order.
func (r *run) everyone() (all []*member) {
	all = append(all, r.members...)
	all = append(append(all, r.spares...), r.starting...)
	for _, h := range append(r.handing[:len(r.handing):len(r.handing)], r.pending...) {
		all = append(all, h.from, h.to)
	}
	return all
}

// replay lets another run handle the events, without connections or a clock.
func (t *tape) replay(tt *testing.T) {
	if len(t.events) == 0 || tt.Failed() {
		return
	}
	r := newRun(t.s.Plan, t.s.name, t.s.key)
	r.self, r.listens = t.s.self, t.s.listens
	r.KeepEvery = t.s.KeepEvery
	r.beginJoining()
	started := child(0)
	for rank, m := range r.members {
		if r.Spawn != nil && !m.reserved {
			started++
			m.child, m.name, m.awaited = started, t.first[rank].name, true
		}
	}
	other := map[*member]*member{}
	pair := func(recorded []*member) {
		for i, m := range r.everyone() {
			if m != nil {
				other[recorded[i]] = m
			}
		}
	}
	pair(t.first)
	for i, e := range t.events {
		o := e.event
		if o.of != nil {
			require.NotNil(tt, other[o.of], "event %d: %s", i, e.effects[0])
			o.of = other[o.of]
		}
		if o.tick != nil {
			of := *o.tick
			of.seen, of.blocked = nil, nil
			for _, k := range o.tick.seen {
				k.of = other[k.of]
				of.seen = append(of.seen, k)
			}
			for _, m := range o.tick.blocked {
				of.blocked = append(of.blocked, other[m])
			}
			o.tick = &of
		}
		if o.joined != nil {
			c := *o.joined
			o.joined = &c
		}
		r.now = e.now
		r.handle(o)
		require.Equal(tt, e.effects, texts(&o, r.take()), "event %d", i)
		require.Len(tt, r.everyone(), len(e.members))
		pair(e.members)
	}
	require.Equal(tt, t.s.started, r.started)
}
