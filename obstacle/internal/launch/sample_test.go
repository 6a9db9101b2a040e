package launch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// shown is a Samples that wants every second point of a row of six.
type shown struct {
	not bool
	u   [][]float64
}

func (s *shown) Due() (rendezvous.Sample, bool) {
	return rendezvous.Sample{First: [3]int{1, 0, 0}, Stride: [3]int{2, 1, 1}, Size: [3]int{3, 1, 1}}, !s.not
}

func (s *shown) Take(_ rendezvous.Sample, u []float64, _ Progress) { s.u = append(s.u, u) }

// showing returns a run of two connected peers, and what it shows.
func showing(t *testing.T) (*run, *shown) {
	t.Helper()
	r, _ := capturing(t)
	s := &shown{}
	r.Captures, r.Samples, r.tick = nil, s, minTick
	for _, m := range r.members {
		m.conn = 1
	}
	return r, s
}

func TestSample(t *testing.T) {
	r, s := showing(t)
	r.tickSample()
	r.tickSample() // one at a time
	require.Equal(t, 1, asked(r, r.members[0]))
	require.Equal(t, 1, asked(r, r.members[1]))
	send := func(rank, number int, box problem.Box, u ...float64) {
		r.receiveSample(r.members[rank], &rendezvous.Captured{Number: number, Sampled: true, Box: box}, u)
		r.passCaptures()
	}
	left, right := r.members[0].box, r.members[1].box // points 0 to 2 and 3 to 5; the sample has 1, 3 and 5
	send(1, 1, right, 3, 5)
	send(1, 1, right, 9, 9) // a second answer is not read
	send(0, 0, left, 9)     // nor a late one
	require.Empty(t, s.u)
	send(0, 1, left, 1)
	require.Equal(t, [][]float64{{1, 3, 5}}, s.u)

	// A peer may send anything, or nothing: the rest is shown.
	r.tickSample()
	send(0, 2, problem.Box{Lo: [3]int{-5, 0, 0}, Hi: [3]int{99, 1, 1}}, 1)
	for range r.ticks(sampleTime) {
		r.tickSample()
		r.passCaptures()
	}
	require.Len(t, s.u, 2)
	for _, v := range s.u[1] {
		require.True(t, math.IsNaN(v))
	}
	asked(r, r.members[0])
	s.not = true
	for range 2 * r.ticks(sampleTime) {
		r.tickSample()
	}
	asked(r, r.members[0])
	r.tickSample()
	require.Zero(t, asked(r, r.members[0]), "nobody looks")
}

// The accounts of a rank go on over epochs, in which its peer, or another one, counts anew.
func TestAccountsOfEpochs(t *testing.T) {
	s := State{Sessions: map[int][]rendezvous.Session{}, Former: map[int]rendezvous.Traffic{}, Accounts: map[int]Account{}}
	add := func(epoch int, seconds float64, faces uint64) {
		s.report(2, &rendezvous.Sessions{Account: &rendezvous.Account{
			Epoch: epoch, Sweep: 10 * uint64(seconds), Seconds: seconds, Relaxing: seconds / 2, Waiting: seconds / 4,
			Reads: []rendezvous.Reads{{Rank: 1, Faces: faces, Sum: 2 * faces, Ages: []uint64{faces, 0}}},
		}})
	}
	add(0, 4, 8)
	add(0, 8, 10)
	add(1, 2, 1)
	add(1, 4, 3)
	a := s.Accounts[2]
	require.Equal(t, []float64{12, 6, 3}, []float64{a.Seconds, a.Relaxing, a.Waiting})
	require.Equal(t, []rendezvous.Reads{{Rank: 1, Faces: 13, Sum: 26, Ages: []uint64{13, 0}}}, a.Reads)
	s.report(2, &rendezvous.Sessions{Sessions: []rendezvous.Session{}})
	require.Equal(t, 12.0, s.Accounts[2].Seconds, "a peer that has not relaxed says nothing")
}
