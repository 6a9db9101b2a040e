package solver

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The values of the parts of a box are those of the solution, with every method, also of problems that are scaled.
func TestValuesOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: iterate.Synchronous(), Tolerance: 1e-3,
		}
		c.Method.Name = rapid.SampledFrom([]string{
			problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz,
		}).Draw(t, "method")
		n := runOf(t, 1, c)
		require.NoError(t, n.Run())
		for _, q := range n.Peers {
			box := q.Box()
			want, got := make([]float64, box.Points()), make([]float64, 0, box.Points())
			q.Solution(want)
			axis := 2
			for axis > 0 && box.Size()[axis] == 1 {
				axis--
			}
			pieces := rapid.IntRange(1, box.Size()[axis]).Draw(t, "pieces")
			for i := range pieces {
				part := problem.Chunk(box, axis, i, pieces)
				u := make([]float64, part.Points())
				q.Values(u, part)
				got = append(got, u...)
			}
			solvertest.RequireSameBits(t, want, got)
		}
	})
}
