package multilevel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRedBlackEqualsOnePeerOnAnyPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Tolerance: 1e-5, MaxSweeps: 2000,
			Method: problem.MethodConfig{
				Name:  problem.SOR,
				Omega: rapid.SampledFrom([]float64{0, 1.2, 1.6}).Draw(t, "omega"),
			},
			Omega: rapid.SampledFrom([]float64{0, 1.4}).Draw(t, "first omega"),
			Late:  rapid.Bool().Draw(t, "late"),
			Lag:   iterate.Iteration(rapid.IntRange(0, 3).Draw(t, "lag")),
		}
		lockstep := []iterate.Scheme{
			iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Hybrid(make([]int, c.Partition.Peers())),
		}
		c.Scheme = rapid.SampledFrom(lockstep).Draw(t, "scheme")
		if rapid.Bool().Draw(t, "check often") {
			c.CheckEvery = iterate.Iteration(rapid.IntRange(1, 10).Draw(t, "every"))
			c.Lag = min(c.Lag, c.CheckEvery)
		}
		one, _ := sameAsAlone(t, rapid.Uint64().Draw(t, "seed"), c)
		if o := one.peers[0].Outcome(); o.Reason == iterate.Converged {
			e, err := verify.Evaluate(p, one.answer(p), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
		}
	})
}

func TestMethodRejectsInvalidConfig(t *testing.T) {
	p := solvertest.Membrane([3]int{7, 7, 7}, 3)
	for _, c := range []struct {
		change func(c *problem.Config)
		says   string
	}{
		{func(c *problem.Config) { c.Scheme = iterate.Asynchronous() }, "schwarz"},
		{func(c *problem.Config) { c.Scheme = iterate.BoundedDelay(2) }, "delay:2"},
		{func(c *problem.Config) { c.Order = problem.InTurn }, "in-turn"},
		{func(c *problem.Config) { c.Method.Omega = 2 }, "between 0 and 2"},
		{func(c *problem.Config) { c.Omega = -1 }, "between 0 and 2"},
		{func(c *problem.Config) { c.Tolerance = math.NaN() }, "tolerance"},
	} {
		config := problem.Config{
			Problem:   p,
			Partition: solvertest.SlabsOf(t, p, 2),
			Scheme:    iterate.Synchronous(),
			Method:    problem.MethodConfig{Name: problem.SOR},
			Tolerance: 1e-6,
		}
		c.change(&config)
		_, err := newPeerOf(config)
		require.ErrorContains(t, err, c.says)
	}
}

// Ghost values that are not a number, or that no peer of a bounded problem has, are refused.
func TestHaloRefusesImpossibleValues(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 4, 3}, 3)
	for _, name := range []string{problem.SOR, problem.Multigrid} {
		g, err := newPeerOf(problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Scheme: iterate.Synchronous(),
			Method: problem.MethodConfig{Name: name}, Tolerance: 1e-6,
		})
		require.NoError(t, err)
		l := g.Links()[0]
		halo := func(v float64) error {
			return g.Halo(0, l.Rank, 0, 0, bytes.Repeat(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), l.Slots[0]/8))
		}
		require.ErrorIs(t, halo(math.NaN()), kernel.ErrNotFinite)
		require.ErrorIs(t, halo(math.Inf(1)), kernel.ErrNotFinite)
		require.ErrorIs(t, halo(-1e300), kernel.ErrTooLarge)
		require.NoError(t, halo(1e99))
	}
}

// FuzzHalo checks that arbitrary bytes from the network do not cause a panic.
func FuzzHalo(f *testing.F) {
	p := solvertest.Membrane([3]int{5, 4, 3}, 3)
	part, err := problem.GridOf(p.N, [3]int{1, 2, 2})
	require.NoError(f, err)
	f.Add(false, uint32(0), uint64(0), []byte("12345678"), uint32(2), uint64(0), []byte{0, 2, 0, 0, 0, 0})
	f.Add(true, uint32(6), uint64(0), make([]byte, 192), uint32(2), uint64(0), []byte{0, 2, 0, 0, 0, 0})
	f.Fuzz(
		func(t *testing.T, multigrid bool, tag uint32, label uint64, data []byte, tag2 uint32, label2 uint64, data2 []byte) {
			m := problem.MethodConfig{Name: problem.SOR}
			if multigrid {
				m.Name = problem.Multigrid
			}
			g, err := newPeerOf(
				problem.Config{
					Problem:      p,
					Partition:    part,
					Scheme:       iterate.Synchronous(),
					Method:       m,
					Tolerance:    1e-6,
					GatherPoints: 1,
				},
			)
			require.NoError(t, err)
			for range 3 {
				for _, l := range g.Links() {
					_ = g.Halo(0, l.Rank, tag, label, data)
					_ = g.Halo(0, l.Rank, tag2, label2, data2)
				}
				for range 20 {
					op := g.Next(0)
					switch op.Kind {
					case iterate.OpRelax:
						g.Relax(op)
					case iterate.OpSend:
						g.Pack(op, make([]byte, op.Bytes))
					case iterate.OpFail:
						require.Error(t, op.Err)
						return
					}
				}
			}
		},
	)
}

func TestSumsRoundTripThroughTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &peer{}
		g.allReduce.init(g)
		n := rapid.IntRange(0, maxSums).Draw(t, "n")
		for i := range n {
			for _, v := range rapid.SliceOf(rapid.Float64()).Draw(t, "values") {
				g.allReduce.sums[i].Add(v)
			}
		}
		g.stopWanted = rapid.SampledFrom([]iterate.Reason{iterate.Running, iterate.Interrupted, iterate.ReachedTime}).
			Draw(t, "reason")
		g.allReduce.contribute(n)
		g.allReduce.encodeSums()
		require.LessOrEqual(t, len(g.allReduce.bytes), sumsBytes)
		var back [maxSums]kernel.Sum
		reason, m, err := decodeSums(g.allReduce.bytes, &back)
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, g.stopWanted, reason)
		for i := range n {
			require.True(t, back[i].Equal(&g.allReduce.sums[i]))
		}
		cut := rapid.IntRange(0, len(g.allReduce.bytes)-1).Draw(t, "cut")
		_, _, err = decodeSums(g.allReduce.bytes[:cut], &back)
		require.Error(t, err, fmt.Sprint(cut))
	})
}

// Each time step begins with the result of the previous one, in lockstep.
func TestRedBlackSolvesTimeStepsAsOnePeer(t *testing.T) {
	p := solvertest.Heating(9, 3)
	for _, parts := range [][3]int{{2, 1, 1}, {2, 2, 1}, {3, 1, 1}} {
		part, err := problem.GridOf(p.N, parts)
		require.NoError(t, err)
		one, _ := sameAsAlone(
			t,
			5,
			problem.Config{
				Problem:   p,
				Partition: part,
				Scheme:    iterate.Synchronous(),
				Tolerance: 1e-5,
				Method:    problem.MethodConfig{Name: problem.SOR, Omega: 1.3},
			},
		)
		require.Len(t, one.steps[0], p.Evolution.Steps)
		require.Equal(t, iterate.Converged, one.peers[0].Outcome().Reason)
	}
}

// pair runs two peers without allocating: messages are written to the other peer's buffer.
type pair struct {
	peers  [2]problem.Peer
	slots  [2][][]byte // receive buffers of a peer, by tag
	pieces [2][][]byte // the message in each
}

func (k *pair) turn(i int) (done bool) {
	p := k.peers[i]
	switch op := p.Next(0); op.Kind {
	case iterate.OpRelax:
		p.Relax(op)
	case iterate.OpSend:
		buf := k.slots[1-i][op.Tag][:op.Bytes]
		p.Pack(op, buf)
		k.pieces[1-i][op.Tag] = buf
		pieces := k.pieces[1-i][op.Tag : op.Tag+1]
		if err := k.peers[1-i].Halo(0, iterate.Rank(i), op.Tag, op.Label, pieces...); err != nil {
			panic(err)
		}
	case iterate.OpDone:
		return true
	}
	return false
}

// A cycle allocates nothing, alone or with a neighbour.
func TestCyclesDoNotAllocate(t *testing.T) {
	p := solvertest.Membrane([3]int{47, 47, 47}, 3)
	for _, name := range []string{problem.SOR, problem.Multigrid} {
		c := problem.Config{
			Problem:      p,
			Partition:    solvertest.SlabsOf(t, p, 2),
			Scheme:       iterate.Synchronous(),
			Method:       problem.MethodConfig{Name: name},
			GatherPoints: 1000,
		}
		k := &pair{}
		for i, one := range solvertest.ConfigsFor(c) {
			var err error
			k.peers[i], err = newPeerOf(one)
			require.NoError(t, err)
			for _, n := range k.peers[i].Links()[0].Slots {
				k.slots[i], k.pieces[i] = append(k.slots[i], make([]byte, n)), append(k.pieces[i], nil)
			}
		}
		cycle := func() {
			for want := k.peers[0].Outcome().Sweeps + 1; k.peers[0].Outcome().Sweeps < want; {
				require.False(t, k.turn(0) || k.turn(1))
			}
		}
		for range 6 { // the list of truncated points reaches its final length
			cycle()
		}
		require.Zero(t, testing.AllocsPerRun(4, cycle), name)

		one, err := newPeerOf(alone(c))
		require.NoError(t, err)
		cycle = func() {
			for want := one.Outcome().Sweeps + 1; one.Outcome().Sweeps < want; {
				if op := one.Next(0); op.Kind == iterate.OpRelax {
					one.Relax(op)
				}
			}
		}
		for range 6 {
			cycle()
		}
		require.Zero(t, testing.AllocsPerRun(4, cycle), "%s alone", name)
	}
}
