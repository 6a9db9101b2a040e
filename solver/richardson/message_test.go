package richardson

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// FuzzAgree passes arbitrary messages in various states to a worker in the middle of the tree. The worker may
// refuse them. It must not panic, loop or end without a reason.
func FuzzAgree(f *testing.F) {
	for i, m := range solvertest.Samples() {
		f.Add(m.Encode(), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8) {
		p := solvertest.Membrane([3]int{2, 2, 4}, 3)
		if what&4 != 0 {
			p.Reaction.Of = func(q problem.Point) float64 { return q[0] }
		}
		part, err := problem.Slabs(p.N, 3, nil)
		require.NoError(t, err)
		if what&8 != 0 {
			base := *p
			p.Evolution = &problem.Evolution{
				End:   1,
				Steps: 3,
				At:    func(float64) *problem.Problem { q := base; return &q },
			}
		}
		schemes := []iterate.Scheme{
			iterate.Synchronous(),
			iterate.Asynchronous(),
			iterate.BoundedDelay(0),
			iterate.Hybrid([]int{0, 0, 1}),
		}
		w, err := newWorker(
			problem.Config{
				Problem:       p,
				Partition:     part,
				Scheme:        schemes[what%4],
				Rank:          1,
				MaxSweeps:     5,
				Reconfigure:   what&16 != 0,
				Balance:       what&32 != 0,
				BalanceWindow: 1,
			},
		)
		require.NoError(t, err)
		for n := 0; n < 8; n++ {
			for range 30 {
				op := w.Next(0)
				switch op.Kind {
				case iterate.OpRelax:
					w.Relax(op)
				case iterate.OpSend:
					w.Pack(op, make([]byte, op.Bytes))
				}
				if op.Kind == iterate.OpWait || op.Kind == iterate.OpDone {
					break
				}
			}
			q := iterate.Rank(2 * (int(what>>3) >> n & 1))
			size := min(len(data), 1+int(what)*n)
			_ = w.Agree(0, q, data)
			_ = w.Agree(0, q, data[:size])
			_ = w.Halo(
				0,
				q,
				uint32(n)%2,
				iterate.PackLabel(int(what>>4)%4, int(what>>6)%3, iterate.Iteration(what)%3),
				make([]byte, 32),
			)
		}
		if w.Next(0).Kind == iterate.OpDone {
			require.NotEqual(t, iterate.Running, w.Outcome().Reason)
		}
	})
}

func TestAgreeNamesThePeer(t *testing.T) {
	p := solvertest.Membrane([3]int{2, 2, 6}, 3)
	part, err := problem.Slabs(p.N, 3, nil)
	require.NoError(t, err)
	make3 := func(s iterate.Scheme) *worker {
		w, err := newWorker(problem.Config{Problem: p, Partition: part, Scheme: s, Rank: 1})
		require.NoError(t, err)
		return w
	}
	for name, c := range map[string]struct {
		scheme iterate.Scheme
		from   iterate.Rank
		m      iterate.Message
		want   string
	}{
		"not a neighbour": {iterate.Synchronous(), 1, iterate.Message{Kind: iterate.MsgClose},
			"rank 1, which is not a neighbour"},
		"verdict from a child": {iterate.Synchronous(), 2, iterate.Message{Kind: iterate.MsgVerdict},
			"rank 2: message kind"},
		"residual from parent": {iterate.Synchronous(), 0, iterate.Message{Kind: iterate.MsgResidual},
			"rank 0: message kind"},
		"early verdict": {iterate.Synchronous(), 0, iterate.Message{Kind: iterate.MsgVerdict},
			"not complete at this peer"},
		"late residual": {iterate.Synchronous(), 2, iterate.Message{Kind: iterate.MsgResidual, Number: 64},
			"iterate 64; that of iterate 0"},
		"face in lockstep": {iterate.Synchronous(), 2, iterate.Message{Kind: iterate.MsgCaptured,
			Values: make([]byte, 32)}, "does not use"},
		"far snapshot": {iterate.Asynchronous(), 2, iterate.Message{Kind: iterate.MsgCaptured, Number: 2,
			Values: make([]byte, 32)}, "snapshot 2; snapshot 0 is open"},
		"short face": {iterate.Asynchronous(), 2, iterate.Message{Kind: iterate.MsgCaptured, Values: make([]byte,
			8)}, "8 bytes; 32 are expected"},
		"early verdict, async": {iterate.Asynchronous(), 0, iterate.Message{Kind: iterate.MsgVerdict},
			"not complete at this peer"},
		"close, async": {iterate.Asynchronous(), 0, iterate.Message{Kind: iterate.MsgClose}, "does not use"},
		"early close": {iterate.BoundedDelay(0), 0, iterate.Message{Kind: iterate.MsgClose},
			"before this peer"},
		"stop without reason": {iterate.Synchronous(), 2, iterate.Message{Kind: iterate.MsgStop},
			"stop request with reason 0"},
		"a step": {iterate.Synchronous(), 0, iterate.Message{Kind: iterate.MsgStep, A: 1},
			"coefficients vary"},
		"a diagonal of 0": {iterate.Synchronous(), 2, iterate.Message{Kind: iterate.MsgDiagonal},
			"coefficients vary"},
	} {
		w := make3(c.scheme)
		require.ErrorContains(t, w.Agree(0, c.from, c.m.Encode()), c.want, name)
	}
	w := make3(iterate.Synchronous())
	require.ErrorContains(t, w.Halo(0, 2, 0, 0, make([]byte, 8)), "rank 2 has 8 bytes")
	require.ErrorContains(t, w.Halo(0, 2, 2, 0, make([]byte, 32)), "tag 2")
	require.ErrorContains(t, w.Halo(0, 2, 1, 0, make([]byte, 32)), "under tag 1")
	require.ErrorContains(t, w.Halo(0, 2, 1, 3, make([]byte, 32)), "cannot have made")
	require.ErrorContains(t, w.Halo(0, 1, 0, 0, make([]byte, 32)), "not a neighbour")
	nan := bytes.Repeat([]byte{0xff}, 32)
	require.ErrorIs(t, w.Halo(0, 2, 1, 1, nan), kernel.ErrNotFinite)
	require.NoError(t, w.Halo(0, 2, 1, 1, make([]byte, 32)))
}
