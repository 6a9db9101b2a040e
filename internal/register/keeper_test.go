package register

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// asks returns the request of p, or of the proposer of a ballot, to the keeper k.
func asks(kind Kind, base Term, ballot Ballot, value *Term) Message {
	return Message{Kind: kind, From: ballot.Proposer, To: "k", Base: base, Ballot: ballot, Value: value}
}

// replies steps a keeper and returns the reply, which must exist and be valid.
func replies(t *testing.T, k *Keeper, m Message) Message {
	t.Helper()
	reply, ok := k.Step(m)
	require.True(t, ok)
	require.True(t, reply.valid(), "%+v", reply)
	require.Equal(t, [2]string{m.To, m.From}, [2]string{reply.From, reply.To})
	require.Equal(t, k.Newest(), reply.Base)
	return reply
}

func TestKeeperVotes(t *testing.T) {
	base := term(3, 0, "k", "l", "m")
	v, w := term(4, 1, "p"), term(4, 1, "q")
	k := NewKeeper("k", base)
	for _, s := range []struct {
		ask          Message
		kind         Kind
		ballot, last Ballot
		value        *Term
	}{
		{asks(Prepare, base, Ballot{2, "p"}, nil), Promise, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Prepare, base, Ballot{2, "p"}, nil), Promise, Ballot{2, "p"}, Ballot{}, nil}, // again
		{asks(Prepare, base, Ballot{1, "q"}, nil), Refuse, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Accept, base, Ballot{1, "q"}, &w), Refuse, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Accept, base, Ballot{2, "o"}, &w), Refuse, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Accept, base, Ballot{2, "p"}, &v), Accepted, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Accept, base, Ballot{2, "p"}, &v), Accepted, Ballot{2, "p"}, Ballot{}, nil},
		{asks(Prepare, base, Ballot{2, "p"}, nil), Promise, Ballot{2, "p"}, Ballot{2, "p"}, &v}, // late
		{asks(Prepare, base, Ballot{2, "q"}, nil), Promise, Ballot{2, "q"}, Ballot{2, "p"}, &v},
		{asks(Accept, base, Ballot{2, "p"}, &v), Refuse, Ballot{2, "q"}, Ballot{}, nil},
		{asks(Accept, base, Ballot{4, "p"}, &w), Accepted, Ballot{4, "p"}, Ballot{}, nil}, // without a promise
		{asks(Prepare, base, Ballot{3, "q"}, nil), Refuse, Ballot{4, "p"}, Ballot{}, nil},
		{asks(Prepare, base, Ballot{5, "q"}, nil), Promise, Ballot{5, "q"}, Ballot{4, "p"}, &w},
	} {
		reply := replies(t, k, s.ask)
		want := Message{Kind: s.kind, From: "k", To: s.ask.From, Base: base, Ballot: s.ballot, Last: s.last, Value: s.value}
		require.Equal(t, want, reply)
	}
	require.Equal(t, base, k.Newest())
}

func TestKeeperAdoptsNewerBase(t *testing.T) {
	base, newer := term(3, 0, "k", "l"), term(7, 1, "l", "k")
	v := term(4, 0, "k")
	k := NewKeeper("k", base)
	replies(t, k, asks(Prepare, base, Ballot{9, "p"}, nil))
	replies(t, k, asks(Accept, base, Ballot{9, "p"}, &v))
	reply := replies(t, k, asks(Prepare, newer, Ballot{1, "q"}, nil))
	require.Equal(t, Message{Kind: Promise, From: "k", To: "q", Base: newer, Ballot: Ballot{1, "q"}}, reply)

	reply = replies(t, k, asks(Accept, base, Ballot{9, "p"}, &v))
	require.Equal(t, Message{Kind: Decided, From: "k", To: "p", Base: newer}, reply)
	reply = replies(t, k, asks(Prepare, base, Ballot{10, "p"}, nil))
	require.Equal(t, Message{Kind: Decided, From: "k", To: "p", Base: newer}, reply)

	newest := term(8, 1, "l")
	_, ok := k.Step(Message{Kind: Decided, From: "l", To: "k", Base: newest})
	require.False(t, ok)
	require.Equal(t, newest, k.Newest())
	_, ok = k.Step(Message{Kind: Decided, From: "l", To: "k", Base: newer})
	require.False(t, ok)
	require.Equal(t, newest, k.Newest())
}

func TestAdoptClearsVotes(t *testing.T) {
	base, v := term(3, 0, "k"), term(4, 0, "k")
	next := term(5, 0, "k")
	k := NewKeeper("k", base)
	replies(t, k, asks(Accept, base, Ballot{9, "p"}, &v))
	for _, old := range []Term{{}, {Number: 9}, term(2, 1, "x"), term(3, 1, "x"), term(-1, 0, "x")} {
		k.Adopt(old)
		require.Equal(t, base, k.Newest())
	}
	require.Equal(t, Ballot{9, "p"}, replies(t, k, asks(Prepare, base, Ballot{1, "q"}, nil)).Ballot)
	k.Adopt(v)
	reply := replies(t, k, asks(Prepare, v, Ballot{1, "q"}, nil))
	require.Equal(t, Message{Kind: Promise, From: "k", To: "q", Base: v, Ballot: Ballot{1, "q"}}, reply)
	require.Equal(t, Accepted, replies(t, k, asks(Accept, v, Ballot{1, "q"}, &next)).Kind)
}

func TestKeeperOfOtherTerms(t *testing.T) {
	k := NewKeeper("k", Term{})
	require.Equal(t, Term{}, k.Newest())
	base, next := term(3, 0, "l"), term(4, 0, "k")
	for _, m := range []Message{asks(Prepare, base, Ballot{1, "p"}, nil), asks(Accept, base, Ballot{1, "p"}, &next)} {
		require.Equal(t, Message{Kind: Refuse, From: "k", To: "p", Base: base}, replies(t, k, m))
	}
	require.Equal(t, Promise, replies(t, k, asks(Prepare, next, Ballot{1, "p"}, nil)).Kind)
}

func TestLeaderReached(t *testing.T) {
	base, v := term(3, 0, "p", "k"), term(4, 0, "p", "k")
	k := NewKeeper("k", base)
	k.LeaderReached(true)
	refused := Message{Kind: Refuse, From: "k", To: "q", Base: base}
	require.Equal(t, refused, replies(t, k, asks(Prepare, base, Ballot{5, "q"}, nil)))
	require.Equal(t, refused, replies(t, k, asks(Accept, base, Ballot{5, "q"}, &v)))
	require.Equal(t, Promise, replies(t, k, asks(Prepare, base, Ballot{1, "p"}, nil)).Kind)
	require.Equal(t, Accepted, replies(t, k, asks(Accept, base, Ballot{1, "p"}, &v)).Kind)
	k.LeaderReached(false)
	require.Equal(t, &v, replies(t, k, asks(Prepare, base, Ballot{5, "q"}, nil)).Value)

	k.LeaderReached(true)
	k.Adopt(v) // of the same leader
	require.Equal(t, Refuse, replies(t, k, asks(Prepare, v, Ballot{5, "q"}, nil)).Kind)
	other := term(5, 0, "k")
	k.Adopt(other)
	require.Equal(t, Promise, replies(t, k, asks(Prepare, other, Ballot{5, "q"}, nil)).Kind)
}

func TestKeeperIgnores(t *testing.T) {
	base, v := term(3, 0, "k", "l", "m"), term(4, 1, "p")
	k := NewKeeper("k", base)
	replies(t, k, asks(Prepare, base, Ballot{2, "p"}, nil))
	before := *k
	another, elsewhere := term(3, 9, "k"), asks(Prepare, base, Ballot{3, "p"}, nil)
	elsewhere.To = "l"
	borrowed := asks(Prepare, base, Ballot{3, "p"}, nil)
	borrowed.From = "q"
	for i, m := range append(samples()[4:7],
		Message{}, elsewhere, borrowed,
		asks(Prepare, another, Ballot{3, "p"}, nil),
		asks(Prepare, Term{Number: 9}, Ballot{3, "p"}, nil),
		asks(Accept, base, Ballot{3, "p"}, nil),
		asks(Accept, base, Ballot{3, "p"}, &base),
		asks(Accept, base, Ballot{-3, "p"}, &v),
		asks(Decided, Term{Number: -4, Leader: "k", Keepers: []string{"k"}}, Ballot{}, nil),
	) {
		_, ok := k.Step(m)
		require.False(t, ok, i)
		require.Equal(t, before, *k, i)
	}
}
