package register

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBallotOrder(t *testing.T) {
	order := []Ballot{{}, {1, "a"}, {1, "b"}, {2, "a"}, {2, "aa"}, {10, "a"}}
	for i, b := range order {
		for j, c := range order {
			require.Equal(t, i < j, b.less(c), "%v %v", b, c)
		}
	}
}

func TestKindText(t *testing.T) {
	for k := Prepare; k <= Decided; k++ {
		text, err := json.Marshal(k)
		require.NoError(t, err)
		require.Equal(t, `"`+k.String()+`"`, string(text))
		var back Kind
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, k, back)
	}
	for _, k := range []Kind{0, -1, Decided + 1} {
		_, err := json.Marshal(k)
		require.Error(t, err)
		require.NotEmpty(t, k.String())
	}
	for _, text := range []string{`""`, `"Prepare"`, `"elect"`, `1`, `{}`} {
		var k Kind
		require.Error(t, json.Unmarshal([]byte(text), &k), text)
	}
}

func TestMessageJSON(t *testing.T) {
	next := term(2, 1, "b")
	m := Message{Kind: Accept, From: "b:1", To: "a:1", Base: term(1, 0, "a"), Ballot: Ballot{3, "b:1"}, Value: &next}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "accept", "from": "b:1", "to": "a:1",
		"base": {"number": 1, "epoch": 0, "leader": "a", "keepers": ["a"]},
		"ballot": {"round": 3, "proposer": "b:1"},
		"value": {"number": 2, "epoch": 1, "leader": "b", "keepers": ["b"]}}`, string(text))
	var back Message
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, m, back)
}

// samples returns a valid message of each kind between p, which proposes, and the keeper k.
func samples() []Message {
	base, next := term(3, 0, "k", "l", "m"), term(4, 1, "p", "k")
	ballot, last := Ballot{5, "p"}, Ballot{4, "q"}
	return []Message{
		{Kind: Prepare, From: "p", To: "k", Base: base, Ballot: ballot},
		{Kind: Promise, From: "k", To: "p", Base: base, Ballot: ballot},
		{Kind: Promise, From: "k", To: "p", Base: base, Ballot: ballot, Last: last, Value: &next},
		{Kind: Accept, From: "p", To: "k", Base: base, Ballot: ballot, Value: &next},
		{Kind: Accepted, From: "k", To: "p", Base: base, Ballot: ballot},
		{Kind: Refuse, From: "k", To: "p", Base: base},
		{Kind: Refuse, From: "k", To: "p", Base: base, Ballot: Ballot{9, "q"}},
		{Kind: Decided, From: "k", To: "p", Base: next},
	}
}

func TestMessageValid(t *testing.T) {
	early, wrong := term(3, 1, "p"), Term{Number: 4}
	for _, m := range samples() {
		require.True(t, m.valid(), "%+v", m)
		request, answer := m.Kind == Prepare || m.Kind == Accept, m.Kind == Promise || m.Kind == Accepted
		bad := func(what string, when bool, change func(m *Message)) {
			c := m
			change(&c)
			require.Equal(t, !when, c.valid(), "%s: %+v", what, c)
		}
		bad("kind", true, func(m *Message) { m.Kind = 0 })
		bad("large kind", true, func(m *Message) { m.Kind = Decided + 1 })
		bad("no sender", true, func(m *Message) { m.From = "" })
		bad("no receiver", true, func(m *Message) { m.To = "" })
		bad("no base", true, func(m *Message) { m.Base = Term{} })
		bad("negative base", true, func(m *Message) { m.Base.Number = -3 })
		bad("zero ballot", request || answer, func(m *Message) { m.Ballot = Ballot{} })
		bad("negative round", m.Kind != Decided, func(m *Message) { m.Ballot = Ballot{-1, "p"} })
		bad("large round", m.Kind != Decided, func(m *Message) { m.Ballot = Ballot{maxNumber + 1, "p"} })
		bad("another's ballot", request || answer, func(m *Message) { m.Ballot = Ballot{5, "x"} })
		bad("no value", m.Value != nil, func(m *Message) { m.Value = nil })
		bad("wrong value", m.Value != nil || m.Kind == Promise, func(m *Message) { m.Value = &wrong })
		bad("early value", m.Value != nil || m.Kind == Promise, func(m *Message) { m.Value = &early })
		bad("no last", m.Kind == Promise && m.Value != nil, func(m *Message) { m.Last = Ballot{} })
		bad("late last", m.Kind == Promise, func(m *Message) { m.Last = Ballot{6, "p"} })
	}
}
