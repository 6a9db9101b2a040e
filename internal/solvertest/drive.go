package solvertest

import (
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
