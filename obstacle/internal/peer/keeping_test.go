package peer

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
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
	k.adopt(term)
	require.Equal(t, register.Refuse, ask(1))
	k.leaderReached(false)
	require.Equal(t, register.Promise, ask(2))
}
