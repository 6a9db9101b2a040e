package solver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// single is a run of one peer that is driven operation by operation.
type single struct {
	peer   Block
	points int // of the grid
	work   int // points relaxed
	now    time.Duration
}

// newSingleOf makes the only peer of a run by one method.
func newSingleOf(t require.TestingT, build func(Config) (Block, error), c Config) *single {
	p, err := build(c)
	require.NoError(t, err)
	return &single{peer: p, points: c.Problem.Points()}
}

// step does an operation, and reports whether the run goes on.
func (a *single) step(t require.TestingT) bool {
	a.now += time.Millisecond
	switch op := a.peer.Next(a.now); op.Kind {
	case OpRelax:
		a.work += op.Points
		a.peer.Relax(op)
	case OpDone:
		return false
	case OpFail:
		require.NoError(t, op.Err)
	}
	return true
}

// stopped relaxes so many times the grid, asks for the end, and returns how much work, in
// relaxations of the grid, follows.
func (a *single) stopped(t require.TestingT, after float64) float64 {
	for float64(a.work) < after*float64(a.points) {
		require.True(t, a.step(t), "the run has ended too soon")
	}
	before := a.work
	a.peer.Stop(a.now, Interrupted)
	for a.step(t) {
	}
	require.Equal(t, Interrupted, a.peer.Outcome().Reason)
	return float64(a.work-before) / float64(a.points)
}

// together lets the peers of a run take turns, every message arriving at once and in
// order, until all are done.
func togetherOf(t testing.TB, build func(Config) (Block, error), configs []Config) []Block {
	peers := make([]Block, len(configs))
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
				if op.Kind == OpDone {
					done++
				}
				if op.Kind == OpDone || op.Kind == OpWait {
					break
				}
				moved = true
				act(t, peers, Rank(r), op)
			}
		}
	}
	return peers
}

func act(t testing.TB, peers []Block, r Rank, op Op) {
	switch op.Kind {
	case OpRelax:
		peers[r].Relax(op)
	case OpSend:
		buf := make([]byte, op.Bytes)
		peers[r].Pack(op, buf)
		require.NoError(t, peers[op.To].Halo(0, r, op.Tag, op.Label, buf))
	case OpAgree:
		require.NoError(t, peers[op.To].Agree(0, r, op.Message))
	case OpStep:
	default:
		require.Fail(t, "an operation that was not expected", "%+v", op)
	}
}

// collected is the assembled answer.
func collected(p *Problem, peers []Block) []float64 {
	u := make([]float64, p.Points())
	for _, q := range peers {
		v := make([]float64, q.Box().Points())
		q.Solution(v)
		q.Box().each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}
