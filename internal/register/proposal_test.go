package register

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// answer returns what the keeper from replies to p.
func answer(kind Kind, from string, base Term, round int) Message {
	return Message{Kind: kind, From: from, To: "p", Base: base, Ballot: Ballot{round, "p"}}
}

// receivers returns to whom messages are addressed, which must all have a kind and be valid.
func receivers(t *testing.T, kind Kind, messages []Message) (to []string) {
	t.Helper()
	for _, m := range messages {
		require.Equal(t, kind, m.Kind)
		require.Equal(t, "p", m.From)
		require.True(t, m.valid(), "%+v", m)
		to = append(to, m.To)
	}
	return to
}

func TestProposalDecides(t *testing.T) {
	base, want := term(3, 0, "k", "l", "p", "n"), term(99, 1, "p", "k", "x")
	p, out := NewProposal("p", base, want, 7)
	want.Number = 4
	require.Equal(t, base.Keepers, receivers(t, Prepare, out))
	require.Equal(t, Ballot{7, "p"}, out[0].Ballot)
	require.Equal(t, 7, p.Round())
	require.Empty(t, p.Step(answer(Promise, "l", base, 7)))
	require.Empty(t, p.Step(answer(Promise, "n", base, 7)))
	out = p.Step(answer(Promise, "p", base, 7))
	require.Equal(t, base.Keepers, receivers(t, Accept, out))
	require.Equal(t, &want, out[0].Value)
	require.Empty(t, p.Step(answer(Promise, "k", base, 7)))
	require.Empty(t, p.Step(answer(Accepted, "n", base, 7)))
	require.Empty(t, p.Step(answer(Accepted, "p", base, 7)))
	_, ok := p.Result()
	require.False(t, ok)
	out = p.Step(answer(Accepted, "k", base, 7))
	require.Equal(t, []string{"k", "l", "n", "x"}, receivers(t, Decided, out))
	require.Equal(t, want, out[0].Base)
	require.Empty(t, p.Step(answer(Accepted, "l", base, 7)))
	require.Empty(t, p.Step(Message{Kind: Decided, From: "k", To: "p", Base: term(9, 0, "k")}))
	require.Empty(t, p.Retry())
	got, ok := p.Result()
	require.True(t, ok)
	require.Equal(t, want, got)
}

func TestProposalOfOneKeeper(t *testing.T) {
	base, want := term(1, 0, "k"), term(2, 1, "p")
	p, out := NewProposal("p", base, want, 0)
	require.Equal(t, []string{"k"}, receivers(t, Prepare, out))
	k := NewKeeper("k", base)
	for _, kind := range []Kind{Accept, Decided} {
		reply, ok := k.Step(out[0])
		require.True(t, ok)
		out = p.Step(reply)
		require.Equal(t, []string{"k"}, receivers(t, kind, out))
	}
	got, ok := p.Result()
	require.True(t, ok)
	require.True(t, want.Equal(got))
}

// A proposal takes the value of the highest accepted ballot, whatever the order of promises is.
func TestProposalTakesAcceptedValue(t *testing.T) {
	base := term(3, 0, "k", "l", "m", "n", "o")
	old, newer, want := term(4, 1, "q"), term(4, 2, "r"), term(4, 3, "p")
	promises := []Message{answer(Promise, "k", base, 7), answer(Promise, "l", base, 7), answer(Promise, "m", base, 7)}
	promises[0].Last, promises[0].Value = Ballot{2, "s"}, &old
	promises[1].Last, promises[1].Value = Ballot{3, "r"}, &newer
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		p, _ := NewProposal("p", base, want, 7)
		require.Empty(t, p.Step(promises[order[0]]))
		require.Empty(t, p.Step(promises[order[1]]))
		out := p.Step(promises[order[2]])
		require.Equal(t, base.Keepers, receivers(t, Accept, out))
		require.Equal(t, newer, *out[0].Value)
		for _, from := range []string{"k", "n", "o"} {
			out = p.Step(answer(Accepted, from, base, 7))
		}
		require.Equal(t, append(base.Keepers, "r"), receivers(t, Decided, out))
		got, _ := p.Result()
		require.Equal(t, newer, got)
	}
}

func TestRetry(t *testing.T) {
	base, want, other := term(3, 0, "k", "l", "m"), term(4, 1, "p"), term(4, 2, "q")
	p, _ := NewProposal("p", base, want, 2)
	p.Step(Message{Kind: Refuse, From: "k", To: "p", Base: base, Ballot: Ballot{6, "q"}})
	p.Step(Message{Kind: Refuse, From: "l", To: "p", Base: base, Ballot: Ballot{4, "q"}})
	p.Step(Message{Kind: Refuse, From: "m", To: "p", Base: base})
	p.Step(Message{Kind: Refuse, From: "x", To: "p", Base: base, Ballot: Ballot{40, "q"}}) // not a keeper
	promise := answer(Promise, "k", base, 2)
	promise.Last, promise.Value = Ballot{1, "q"}, &other
	p.Step(promise)
	out := p.Retry()
	require.Equal(t, base.Keepers, receivers(t, Prepare, out))
	require.Equal(t, Ballot{7, "p"}, out[0].Ballot)
	require.Equal(t, 7, p.Round())

	require.Empty(t, p.Step(answer(Promise, "l", base, 2)), "a promise of the ballot before")
	require.Empty(t, p.Step(answer(Promise, "l", base, 7)))
	out = p.Step(answer(Promise, "m", base, 7))
	require.Equal(t, want, *out[0].Value, "the promise of the ballot before does not count")
	p.Step(answer(Accepted, "k", base, 7))
	out = p.Retry()
	require.Equal(t, Ballot{8, "p"}, out[0].Ballot)
	require.Empty(t, p.Step(answer(Accepted, "l", base, 7)))
	_, ok := p.Result()
	require.False(t, ok)
	require.Empty(t, p.Step(answer(Promise, "l", base, 8)))
	require.Equal(t, base.Keepers, receivers(t, Accept, p.Step(answer(Promise, "k", base, 8))))
}

func TestProposalLearns(t *testing.T) {
	base, want := term(3, 0, "k", "l"), term(4, 1, "p")
	for _, kind := range []Kind{Decided, Refuse} {
		p, _ := NewProposal("p", base, want, 1)
		later := term(6, 0, "x")
		require.Empty(t, p.Step(Message{Kind: kind, From: "x", To: "p", Base: later}))
		got, ok := p.Result()
		require.True(t, ok)
		require.Equal(t, later, got)
		require.Empty(t, p.Retry())
	}
}

func TestProposalIgnores(t *testing.T) {
	base, want := term(3, 0, "k", "l", "m"), term(4, 1, "p")
	p, _ := NewProposal("p", base, want, 5)
	p.Step(answer(Promise, "k", base, 5))
	before := *p
	elsewhere, unfounded := answer(Promise, "l", base, 5), answer(Promise, "l", base, 5)
	elsewhere.To = "q"
	unfounded.Last = Ballot{4, "q"}
	foreign := answer(Promise, "l", base, 5)
	foreign.Ballot.Proposer = "q"
	for i, m := range []Message{
		{}, elsewhere, unfounded, foreign, samples()[0], samples()[3],
		answer(Promise, "k", base, 5), // again
		answer(Promise, "x", base, 5), // not a keeper
		answer(Accepted, "l", base, 5),
		answer(Promise, "l", base, 4),
		answer(Promise, "l", base, -5),
		answer(Promise, "l", term(2, 0, "k", "l", "m"), 5),
		answer(Promise, "l", term(3, 1, "k", "l", "m"), 5),
		{Kind: Decided, From: "l", To: "p", Base: base},
		{Kind: Decided, From: "l", To: "p", Base: Term{Number: 4}},
		{Kind: Refuse, From: "l", To: "p", Base: base, Ballot: Ballot{maxNumber + 1, "q"}},
		{Kind: Refuse, From: "l", To: "q", Base: base, Ballot: Ballot{9, "q"}},
		{Kind: Decided, From: "l", To: "q", Base: term(4, 1, "q")},
	} {
		require.Empty(t, p.Step(m), i)
		require.Equal(t, before, *p, i)
	}
	p.Step(answer(Promise, "l", base, 5))
	p.Step(answer(Accepted, "k", base, 5))
	require.Empty(t, p.Step(answer(Accepted, "k", base, 5)), "again")
	_, ok := p.Result()
	require.False(t, ok)
}

func TestProposalOfNothing(t *testing.T) {
	base, want := term(3, 0, "k"), term(4, 1, "p")
	for _, c := range []struct {
		self       string
		base, want Term
		round      int
	}{
		{"", base, want, 1},
		{"p", Term{}, want, 1},
		{"p", term(-1, 0, "k"), want, 1},
		{"p", term(maxNumber, 0, "k"), want, 1},
		{"p", base, Term{}, 1},
		{"p", base, term(4, -1, "p"), 1},
		{"p", base, want, maxNumber + 1},
		{"p", base, want, int(^uint(0) >> 1)},
	} {
		p, out := NewProposal(c.self, c.base, c.want, c.round)
		require.Empty(t, out)
		require.Empty(t, p.Retry())
		for _, m := range samples()[:7] {
			require.Empty(t, p.Step(m))
		}
	}
	p, out := NewProposal("p", base, want, maxNumber)
	require.Len(t, out, 1)
	require.Empty(t, p.Retry())
	require.Equal(t, maxNumber, p.Round())
}
