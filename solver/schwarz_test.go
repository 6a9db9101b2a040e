package solver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// together lets the peers of a run take turns, every message arriving at once and in
// order, until all are done.
func together(t testing.TB, configs []Config) []Peer {
	peers := make([]Peer, len(configs))
	for r := range peers {
		p, err := New(configs[r])
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

func act(t testing.TB, peers []Peer, r Rank, op Op) {
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
func collected(p *Problem, peers []Peer) []float64 {
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

func TestProto(t *testing.T) {
	p := membrane([3]int{64, 64, 64}, 3)
	for _, parts := range [][3]int{{2, 2, 2}, {4, 4, 4}} {
		part, err := GridOf(p.N, parts)
		require.NoError(t, err)
		for _, coarse := range []int{-1, 0, 512} {
			for _, overlap := range []int{1, 2, 4} {
				for _, work := range []int{1, 2, 4} {
					c := Config{Problem: p, Partition: part, Scheme: Synchronous(), Tolerance: 1e-6, MaxSweeps: 60,
						Method: MethodConfig{Name: Schwarz, Overlap: overlap, Work: work, Coarse: coarse}}
					peers := together(t, configsFor(c))
					o := peers[0].Outcome()
					e, err := Evaluate(p, collected(p, peers), nil)
					require.NoError(t, err)
					fmt.Println(parts, "coarse", coarse, "overlap", overlap, "work", work, "exchanges", o.Iterate, o.Reason, e.RelativeResidual)
				}
			}
		}
	}
}
