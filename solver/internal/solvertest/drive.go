package solvertest

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Single is a run of one peer, one operation at a time.
type Single struct {
	Peer   problem.Peer
	points int // of the grid
	work   int // points relaxed
	now    time.Duration
}

// NewSingle returns a run with the peer that build returns.
func NewSingle(t require.TestingT, build func(problem.Config) (problem.Peer, error), c problem.Config) *Single {
	p, err := build(c)
	require.NoError(t, err)
	return &Single{Peer: p, points: c.Problem.Points()}
}

// Step carries out one operation and reports whether the run continues.
func (a *Single) Step(t require.TestingT) bool {
	a.now += time.Millisecond
	switch op := a.Peer.Next(a.now); op.Kind {
	case iterate.OpRelax:
		a.work += op.Points
		a.Peer.Relax(op)
	case iterate.OpDone:
		return false
	case iterate.OpFail:
		require.NoError(t, op.Err)
	}
	return true
}

// Stopped relaxes the grid the given number of times and requests the end. It returns the work that follows, in
// relaxations of the grid.
func (a *Single) Stopped(t require.TestingT, after float64) float64 {
	for float64(a.work) < after*float64(a.points) {
		require.True(t, a.Step(t), "the run has ended too soon")
	}
	before := a.work
	a.Peer.Stop(a.now, iterate.Interrupted)
	for a.Step(t) {
	}
	require.Equal(t, iterate.Interrupted, a.Peer.Outcome().Reason)
	return float64(a.work-before) / float64(a.points)
}

// Together runs peers in turns until all are done. Messages arrive at once and in order.
func Together(t testing.TB, build func(problem.Config) (problem.Peer, error), configs []problem.Config) []problem.Peer {
	peers := make([]problem.Peer, len(configs))
	for r := range peers {
		p, err := build(configs[r])
		require.NoError(t, err)
		peers[r] = p
	}
	for done, moved := 0, true; done < len(peers); {
		require.True(t, moved, "stuck")
		done, moved = 0, false
		for r, p := range peers {
			for op := p.Next(0); ; op = p.Next(0) {
				if op.Kind == iterate.OpDone {
					done++
				}
				if op.Kind == iterate.OpDone || op.Kind == iterate.OpWait {
					break
				}
				moved = true
				act(t, peers, iterate.Rank(r), op)
			}
		}
	}
	return peers
}

func act(t testing.TB, peers []problem.Peer, r iterate.Rank, op iterate.Op) {
	switch op.Kind {
	case iterate.OpRelax:
		peers[r].Relax(op)
	case iterate.OpSend:
		buf := make([]byte, op.Bytes)
		peers[r].Pack(op, buf)
		require.NoError(t, peers[op.To].Halo(0, r, op.Tag, op.Label, buf))
	case iterate.OpAgree:
		require.NoError(t, peers[op.To].Agree(0, r, op.Message))
	case iterate.OpStep:
	default:
		require.Fail(t, "an operation that was not expected", "%+v", op)
	}
}

// Collected returns the assembled answer of all peers.
func Collected(p *problem.Problem, peers []problem.Peer) []float64 {
	u := make([]float64, p.Points())
	for _, q := range peers {
		v := make([]float64, q.Box().Points())
		q.Solution(v)
		q.Box().Each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}
