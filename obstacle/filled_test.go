//go:build linux

package obstacle_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// One of two simulated peers sends its block, and the connection of the other ends. The exit code is 0 if the filled
// answer meets the tolerance, as it does if the surviving block is that of the solution, else 1.
func TestExitCodeOfAFilledAnswer(t *testing.T) {
	p, _, err := file.Load("membrane", []int{12})
	require.NoError(t, err)
	exact, err := richardson.SolveSequential(p, problem.InTurn, 1e-11, 0, 0, 0)
	require.NoError(t, err)
	const secret = "the secret of this run"
	for _, c := range []struct {
		block []float64
		code  int
	}{
		{exact.U[:len(exact.U)/2], 0},
		{make([]float64, len(exact.U)/2), 1},
	} {
		r, address, _ := waiting(t, "solve", "membrane", "--n", "12", "--peers", "2", "--balance", "off", "--recover", "off")
		identity, err := identify(build.Version(), build.Fingerprint(gated()), []byte(secret))
		require.NoError(t, err)
		var played []*rendezvous.Conn
		for rank := range 2 {
			c, err := net.Dial("tcp", address)
			require.NoError(t, err)
			conn := rendezvous.NewConn(c, patience)
			defer conn.Close()
			_, err = conn.Join(identity, rendezvous.Join{Rank: rank, Host: "h"}, patience)
			require.NoError(t, err)
			require.NoError(t, conn.Send(rendezvous.Listen{Control: "127.0.0.1:9"}))
			played = append(played, conn)
		}
		for _, conn := range played {
			for _, kind := range []rendezvous.Kind{rendezvous.KindAssign, rendezvous.KindChunk} {
				_, err := conn.ReceiveWithin(patience, kind)
				require.NoError(t, err)
			}
			require.NoError(t, conn.Send(rendezvous.Ready{}))
		}
		for _, conn := range played {
			_, err := conn.ReceiveWithin(patience, rendezvous.KindStart)
			require.NoError(t, err)
		}
		data := make([]byte, 8*len(c.block))
		blocks.Encode(data, c.block)
		require.NoError(t, played[0].Send(rendezvous.Chunk{Stream: rendezvous.StreamSolution, Data: data}))
		require.NoError(t, played[0].Send(rendezvous.Result{Reason: launch.Converged, Lost: -1, Points: len(c.block)}))
		played[1].Close()
		for over := false; !over; {
			m, err := played[0].ReceiveWithin(patience, rendezvous.KindProbe, rendezvous.KindStop, rendezvous.KindLost, rendezvous.KindBye)
			require.NoError(t, err)
			_, over = m.(rendezvous.Bye)
		}
		played[0].Close()

		require.Equal(t, c.code, r.wait(patience))
		s := r.solution()
		require.Equal(t, "failed", s.Reason)
		require.Equal(t, c.code == 0, s.Converged)
		require.Equal(t, []int{1}, s.MissingBlocks)
		require.Len(t, s.FilledBlocks, 1)
		r.said("peer 1 .* closed its connection")
	}
}
