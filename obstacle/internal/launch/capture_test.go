package launch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// taken is a Captures that wants every iterate.
type taken struct {
	not bool // no iterate is wanted
	u   [][]float64
	at  []Progress
}

func (c *taken) Due() bool                        { return !c.not }
func (c *taken) Take(u []float64, at Progress)    { c.u, c.at = append(c.u, u), append(c.at, at) }
func (c *taken) requireNone(t require.TestingT)   { require.Empty(t, c.u) }
func (c *taken) newest() []float64                { return c.u[len(c.u)-1] }
func valuesOf(b problem.Box, v float64) []float64 { return slices.Repeat([]float64{v}, b.Points()) }

// capturing returns a run of two peers on a row of six points, and what it captures.
func capturing(t *testing.T) (*run, *taken) {
	t.Helper()
	spec, err := file.Open(nil, "torsion1d", nil)
	require.NoError(t, err)
	p, err := spec.BuildValid([]int{6})
	require.NoError(t, err)
	cut, err := problem.Slabs(p.N, 2, nil)
	require.NoError(t, err)
	c := &taken{}
	r := &run{Plan: Plan{Problem: p, Spec: rendezvous.Spec{Partition: cut}, Captures: c}, beat: Progress{Sweep: 7}}
	for rank := range 2 {
		r.members = append(r.members, &member{rank: rank, box: cut.Box(iterate.Rank(rank))})
	}
	return r, c
}

// asked returns the number of the capture that a peer was asked for last, 0 for none.
func asked(r *run, m *member) (number int) {
	for msg := r.next(m); msg != nil; msg = r.next(m) {
		number = msg.(rendezvous.Capture).Number
	}
	return number
}

// tickCapture and tickSample do at a tick what a shell would.
func (r *run) tickCapture() { r.checkCapture(r.capturable() && r.Captures.Due()) }

func (r *run) tickSample() {
	var wanted *rendezvous.Sample
	if r.samplable() {
		if s, due := r.Samples.Due(); due {
			wanted = &s
		}
	}
	r.checkSample(wanted)
}

// passCaptures executes the effects that pass iterates and samples on.
func (r *run) passCaptures() {
	r.effects = slices.DeleteFunc(r.effects, func(e effect) bool {
		switch e := e.(type) {
		case captured:
			r.Captures.Take(e.u, e.at)
		case sampled:
			r.Samples.Take(e.of, e.u, e.at)
		default:
			return false
		}
		return true
	})
}

// answer passes the block of a peer, with all values v.
func answer(r *run, rank, number int, b problem.Box, v float64) {
	r.receiveCapture(r.members[rank], &rendezvous.Captured{Number: number, Box: b}, valuesOf(b, v))
	r.passCaptures()
}

func TestCapture(t *testing.T) {
	r, c := capturing(t)
	left, right := r.members[0].box, r.members[1].box
	for n := 1; n <= 2; n++ {
		r.tickCapture()
		r.tickCapture() // one at a time
		require.Equal(t, n, asked(r, r.members[0]))
		require.Equal(t, n, asked(r, r.members[1]))
		answer(r, 1, n, right, float64(n))
		answer(r, 1, n, right, 9) // a second answer is not read
		answer(r, 0, n-1, left, 9)
		require.Len(t, c.u, n-1)
		answer(r, 0, n, left, -1)
		require.Equal(t, []float64{-1, -1, -1, float64(n), float64(n), float64(n)}, c.newest())
		require.EqualValues(t, 7, c.at[n-1].Sweep)
	}
	answer(r, 0, 2, left, 9)
	require.Equal(t, -1.0, c.u[1][0], "what was taken does not change")
}

// An iterate is dropped if a peer has no values or is lost. None is captured when the run ends or none is wanted.
func TestCaptureIsDropped(t *testing.T) {
	r, c := capturing(t)
	left, right := r.members[0].box, r.members[1].box
	r.tickCapture()
	answer(r, 1, 1, right, 1)
	r.receiveCapture(r.members[0], &rendezvous.Captured{Number: 1, Box: left}, nil)
	answer(r, 0, 1, left, 1)
	c.requireNone(t)

	r.tickCapture()
	require.Equal(t, 2, asked(r, r.members[0]), "the next one begins at once")
	answer(r, 0, 2, left, 1)
	answer(r, 1, 2, left, 1)
	c.requireNone(t)

	r.tickCapture()
	answer(r, 0, 3, left, 1)
	r.epoch++ // a peer was lost
	r.tickCapture()
	require.Equal(t, 4, asked(r, r.members[1]))
	answer(r, 1, 3, right, 1)
	answer(r, 0, 4, left, 2)
	answer(r, 1, 4, right, 2)
	require.Equal(t, valuesOf(problem.Box{Hi: r.Problem.N}, 2), c.newest())

	require.Equal(t, 4, asked(r, r.members[0]))
	for _, end := range []func(){
		func() { c.not = true }, func() { r.active = true }, func() { r.stopping = true },
		func() { r.failure = &failure{} }, func() { r.members[1].gone = true }, func() { r.Captures = nil },
	} {
		c.not, r.active, r.stopping, r.failure, r.members[1].gone = false, false, false, nil, false
		end()
		r.tickCapture()
		require.Zero(t, asked(r, r.members[0]))
	}
}

// If planes move between the blocks of two peers, the iterate is dropped.
func TestCaptureWhilePlanesMove(t *testing.T) {
	r, c := capturing(t)
	r.Balance = true
	part := func(lo, hi int) problem.Box { return problem.Box{Lo: [3]int{lo}, Hi: [3]int{hi, 1, 1}} }
	for n, boxes := range [][2]problem.Box{{part(0, 2), part(3, 6)}, {part(0, 4), part(3, 6)}, {part(0, 4), part(4, 6)}} {
		c.requireNone(t)
		r.tickCapture()
		answer(r, 0, n+1, boxes[0], 1)
		answer(r, 1, n+1, boxes[1], 2)
	}
	require.Equal(t, []float64{1, 1, 1, 1, 2, 2}, c.newest())
}
