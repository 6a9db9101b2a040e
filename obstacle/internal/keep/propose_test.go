package keep

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Over TCP and TLS, keepers decide one term after another. Each is proposed by another of them.
func TestKeepersDecideOverLoopback(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	keepers, term := listen(t, 3)
	for i := range 6 {
		k := keepers[i%3]
		want := after(term, k.Address())
		got, err := k.Propose(ctx, term, want)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want, k.Newest())
		term = got
	}
}

// The proposer tells the other keepers what was decided, also if its caller has ended the context by then.
func TestEveryKeeperLearnsTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		want := after(first, "b")
		ctx, cancel := context.WithCancel(t.Context())
		got, err := n.keepers["b"].Propose(ctx, first, want)
		cancel()
		require.NoError(t, err)
		require.Equal(t, want, got)
		n.settle()
		for _, k := range n.keepers {
			require.Equal(t, want, k.Newest(), k.Address())
		}
	})
}

// Of the terms that two processes propose at once, one is decided. Both learn the same one.
func TestTwoProposersLearnTheSameTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		base := first
		for range 30 {
			var got [2]register.Term
			var errs [2]error
			var both sync.WaitGroup
			wants := []register.Term{after(base, "a"), after(base, "b")}
			for i, want := range wants {
				both.Go(func() { got[i], errs[i] = n.keepers[want.Leader].Propose(t.Context(), base, want) })
			}
			both.Wait()
			require.NoError(t, errs[0])
			require.NoError(t, errs[1])
			require.Equal(t, got[0], got[1])
			require.Contains(t, wants, got[0])
			n.settle()
			for _, k := range n.keepers {
				require.Equal(t, got[0], k.Newest())
			}
			base = got[0]
		}
	})
}

// One keeper of three that gives no answer, or a wrong one, delays nothing.
func TestMinorityWithoutAnswer(t *testing.T) {
	otherRun := first
	otherRun.Epoch = 7
	for name, c := range map[string]func(net.Conn){
		"nobody listens":      nil,
		"silent":              silent,
		"no TLS":              func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 200 OK")) },
		"silent after hello":  voter(func(register.Message) rendezvous.Message { return nil }),
		"keeps no register":   voter(func(register.Message) rendezvous.Message { return rendezvous.Refuse{} }),
		"another message":     voter(func(register.Message) rendezvous.Message { return rendezvous.Chunk{} }),
		"refuses":             refusing(first),
		"refuses another run": refusing(otherRun),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.answer["c"] = c
				begin := time.Now()
				want := after(first, "b")
				got, err := n.keepers["b"].Propose(t.Context(), first, want)
				require.NoError(t, err)
				require.Equal(t, want, got)
				require.Zero(t, time.Since(begin))
				require.LessOrEqual(t, n.settle().Sub(begin), 2*answerTime, "connections remain open")
				require.Equal(t, want, n.keepers["a"].Newest())
			})
		})
	}
}

// refusing returns a process that refuses every request, with a term as its newest.
func refusing(newest register.Term) func(net.Conn) {
	return voter(func(m register.Message) rendezvous.Message {
		return rendezvous.Vote{Message: register.Message{Kind: register.Refuse, From: m.To, To: m.From, Base: newest}}
	})
}

// Without a majority, Propose ends with its context. The error says what was missing.
func TestNoMajority(t *testing.T) {
	wrong := voter(func(m register.Message) rendezvous.Message {
		kind := map[register.Kind]register.Kind{register.Prepare: register.Promise, register.Accept: register.Accepted}
		base := m.Base
		base.Epoch++
		return rendezvous.Vote{
			Message: register.Message{Kind: kind[m.Kind], From: m.To, To: m.From, Base: base, Ballot: m.Ballot},
		}
	})
	for name, c := range map[string]func(net.Conn){
		"nobody listens": nil, "silent": silent, "refusal": refusing(first), "promises for another term": wrong,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.answer["a"], n.answer["c"] = c, c
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := n.keepers["b"].Propose(ctx, first, after(first, "b"))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "no majority of the 3 keepers of term 1 has agreed")
				require.Equal(t, 5*time.Second, time.Since(begin))
				require.Equal(t, first, n.keepers["b"].Newest())
				require.LessOrEqual(t, n.settle().Sub(begin), 5*time.Second, "connections remain open")
			})
		})
	}
}

// Keepers that can be reached again are asked again.
func TestProposalOutlastsAnInterruption(t *testing.T) {
	for name, c := range map[string]func(net.Conn){
		"nobody listens": nil, "silent": silent,
		"keeps no register": voter(func(register.Message) rendezvous.Message { return rendezvous.Refuse{} }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.answer["a"], n.answer["c"] = c, c
				begin := time.Now()
				n.heals = begin.Add(30 * time.Second)
				want := after(first, "b")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got, err := n.keepers["b"].Propose(ctx, first, want)
				require.NoError(t, err)
				require.Equal(t, want, got)
				require.GreaterOrEqual(t, time.Since(begin), 30*time.Second)
				require.LessOrEqual(t, time.Since(begin), 30*time.Second+rendezvous.HandshakeTime+4*retryTime)
				n.settle()
			})
		})
	}
}

// A keeper that reaches the leader votes for the leader and for nobody else.
func TestKeeperThatReachesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		b, c := n.keepers["b"], n.keepers["c"]
		propose := func(k *Keeper, base register.Term) (register.Term, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return k.Propose(ctx, base, after(base, k.Address()))
		}
		b.LeaderReached(true)
		c.LeaderReached(true)
		second, err := propose(n.keepers["a"], first)
		require.NoError(t, err)
		require.Equal(t, "a", second.Leader)
		n.settle()

		n.answer["a"] = nil // lost
		b.LeaderReached(false)
		_, err = propose(b, second)
		require.ErrorContains(t, err, "no majority of the 3 keepers of term 2")
		require.Equal(t, second, c.Newest())
		c.LeaderReached(false)
		third, err := propose(b, second)
		require.NoError(t, err)
		require.Equal(t, "b", third.Leader)
		n.settle()
		require.Equal(t, third, c.Newest())
	})
}

// A keeper may have accepted the term of a ballot before its proposal ended without a result. The next proposal on the
// same term therefore uses higher ballots.
func TestNoBallotIsUsedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		b := n.keepers["b"]
		var mu sync.Mutex
		var rounds []int
		n.answer["a"] = nil
		n.answer["c"] = voter(func(m register.Message) rendezvous.Message {
			mu.Lock()
			defer mu.Unlock()
			rounds = append(rounds, m.Ballot.Round)
			return nil
		})
		// A short one has one ballot, a long one has several.
		for _, limit := range []time.Duration{retryTime / 2, retryTime / 2, 80 * retryTime, retryTime / 2} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			_, err := b.Propose(ctx, first, after(first, "b"))
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			n.settle()
		}
		require.GreaterOrEqual(t, len(rounds), 4)
		for i := range rounds[1:] {
			require.Greater(t, rounds[i+1], rounds[i])
		}
	})
}
