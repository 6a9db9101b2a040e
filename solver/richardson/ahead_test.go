package richardson

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// logged is a worker that records what it packs and may relax ahead at regular calls.
type logged struct {
	*worker
	ahead int // 0: never
	calls int
	faces []packedFace
}

type packedFace struct {
	to    iterate.Rank
	label uint64
	data  []byte
}

func (l *logged) Relax(op iterate.Op) {
	if l.calls++; l.ahead > 0 && l.calls%l.ahead == 0 {
		l.RelaxAhead(op)
		return
	}
	l.worker.Relax(op)
}

func (l *logged) Pack(op iterate.Op, dst []byte) {
	l.worker.Pack(op, dst)
	l.faces = append(l.faces, packedFace{op.To, op.Label, slices.Clone(dst)})
}

// A peer that relaxes whole sweeps ahead, always or sometimes, sends the same bytes in the same order and ends with
// the same answer: with planes that move, with time steps and in every scheme.
func TestRelaxAheadSendsTheSameMessages(t *testing.T) {
	most := iterate.Iteration(300)
	if testing.Short() {
		most = 100
	}
	rapid.Check(t, func(t *rapid.T) {
		var c problem.Config
		if rapid.Bool().Draw(t, "steps") {
			c = anyStepping(t, func(problem.Partition) iterate.Scheme { return iterate.Synchronous() })
		} else {
			p := solvertest.AnyProblem(t)
			c = problem.Config{
				Problem: p, Partition: solvertest.AnyPartition(t, p), Tolerance: 1e-3,
				CheckEvery: iterate.Iteration(rapid.IntRange(0, 9).Draw(t, "every")), MaxSweeps: most,
			}
		}
		if rapid.Bool().Draw(t, "balance") {
			c.Partition, c.Balance, c.BalanceWindow = anySlabs(t, c.Problem), true, 1
		}
		peers := c.Partition.Peers()
		c.Scheme = rapid.SampledFrom([]iterate.Scheme{
			iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2),
			iterate.Hybrid(problem.Clusters(c.Partition, (peers+1)/2)),
		}).Draw(t, "scheme")
		if c.Scheme.Name() == "asynchronous" && !c.Balance {
			c.Order = rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order")
		}
		seed, pace := rapid.Uint64().Draw(t, "seed"), speeds(t, peers)
		ahead := rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "ahead")
		var runs [2][]*logged
		for i := range runs {
			n, err := newNetwork(seed, solvertest.ConfigsFor(c))
			require.NoError(t, err)
			n.PointTime, n.Jitter = pace, 20*time.Microsecond
			for r, w := range workersOf(n) {
				l := &logged{worker: w, ahead: i * ahead}
				n.Peers[r], runs[i] = l, append(runs[i], l)
			}
			require.NoError(t, n.Run())
		}
		for r, l := range runs[0] {
			m := runs[1][r]
			require.Equal(t, l.Outcome(), m.Outcome(), "rank %d", r)
			require.Equal(t, l.faces, m.faces, "rank %d", r)
			u, v := make([]float64, l.Box().Points()), make([]float64, m.Box().Points())
			l.Solution(u)
			m.Solution(v)
			solvertest.RequireSameBits(t, u, v)
		}
	})
}
