package peer

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A keeper whose leader has sent a term votes for nobody else, from its first term on, until it loses the leader.
func TestKeeperVotesForItsLeaderOnly(t *testing.T) {
	k := &keeping{keeper: keep.New("b", rendezvous.Identity{}, rendezvous.Join{}, register.Term{})}
	here, there := net.Pipe()
	go k.keeper.Serve(rendezvous.NewConn(here, 0))
	c := rendezvous.NewConn(there, 0)
	defer c.Close()
	term := register.Term{Number: 2, Leader: "a", Keepers: []string{"a", "b", "c"}}
	ask := func(round int) register.Kind {
		require.NoError(t, c.Send(rendezvous.Vote{Message: register.Message{
			Kind: register.Prepare, From: "c", To: "b", Base: term, Ballot: register.Ballot{Round: round, Proposer: "c"},
		}}))
		m, err := c.ReceiveWithin(time.Minute, rendezvous.KindVote)
		require.NoError(t, err)
		return m.(rendezvous.Vote).Message.Kind
	}
	k.adopt(member.Learn{Term: term, Leader: true})
	require.Equal(t, register.Refuse, ask(1))
	k.leaderReached(false)
	require.Equal(t, register.Promise, ask(2))
}

// A keeper holds the blocks of peers that may be lost with the leader at the ends of two steps. A run that begins again
// has earlier ones.
func TestBlocksOfOtherPeers(t *testing.T) {
	spec, err := file.Open(nil, "front1d", []string{"steps=9", "end=1"})
	require.NoError(t, err)
	p := &peer{cut: problem.Partition{Cuts: [3][]int{{0, 2, 4}, {0, 1}, {0, 1}}}}
	p.problem, err = spec.BuildValid([]int{4})
	require.NoError(t, err)
	here, there := net.Pipe()
	defer here.Close()
	p.in = rendezvous.NewConn(here, 0)
	leader := rendezvous.NewConn(there, 0)
	box := problem.Box{Hi: [3]int{2, 1, 1}}
	hold := func(rank, step int) error {
		go func() {
			data := make([]byte, blocks.Bytes(box))
			blocks.Encode(data, []float64{float64(rank), float64(step)})
			_ = leader.Send(rendezvous.Chunk{Stream: rendezvous.StreamStep, Data: data})
		}()
		return p.hold(rendezvous.Held{Rank: rank, Step: step, Box: box})
	}
	for _, c := range []struct {
		rank, step int
		held       [][2]int
	}{
		{0, 4, [][2]int{{0, 4}}},
		{1, 4, [][2]int{{0, 4}, {1, 4}}},
		{0, 5, [][2]int{{0, 4}, {1, 4}, {0, 5}}},
		{0, 6, [][2]int{{0, 5}, {0, 6}}},
		{0, 6, [][2]int{{0, 5}, {0, 6}}},
		{0, 0, [][2]int{{0, 0}}},
	} {
		require.NoError(t, hold(c.rank, c.step))
		var got [][2]int
		for _, e := range p.keeping.ends {
			require.Equal(t, []float64{float64(e.Rank), float64(e.Step)}, e.U)
			got = append(got, [2]int{e.Rank, e.Step})
		}
		require.Equal(t, c.held, got)
	}
	for name, m := range map[string]rendezvous.Held{
		"no such rank": {Rank: 2, Box: box}, "negative rank": {Rank: -1, Box: box}, "no such step": {Step: 10, Box: box},
		"no box": {}, "a box beyond the grid": {Box: problem.Box{Hi: [3]int{5, 1, 1}}},
	} {
		require.ErrorIs(t, p.hold(m), rendezvous.ErrMalformed, name)
	}
}
