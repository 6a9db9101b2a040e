package solver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestZZ(t *testing.T) {
	p := membrane([3]int{32, 32, 32}, 3)
	for _, parts := range [][3]int{{2, 2, 2}, {4, 4, 4}} {
		for _, coarse := range []int{-1, 0} {
			for _, jitter := range []time.Duration{20, 200, 2000} {
				part, err := GridOf(p.N, parts)
				require.NoError(t, err)
				c := Config{Problem: p, Partition: part, Scheme: Asynchronous(), Tolerance: 1e-6, Method: MethodConfig{Name: Schwarz, Local: SOR, Work: 20, Overlap: 2, Coarse: coarse}}
				n, err := newNetwork(1, configsFor(c))
				require.NoError(t, err)
				n.segment = 1 << 20
				n.jitter = jitter * time.Microsecond
				err = n.run()
				w := n.peers[0].(*schwarz)
				s := "ok"
				if err != nil {
					s = err.Error()[:50]
				}
				it := Iteration(0)
				for _, q := range n.peers {
					it += q.Outcome().Sweeps
				}
				fmt.Print(parts, " coarse ", coarse, " jitter ", jitter, " mean it ", int(it)/len(n.peers), " root ", w.iterate, " at ", n.now, " snapshots ", w.Outcome().Snapshots, " ", s)
				if w.coarse != nil {
					fmt.Print(" newest ", w.coarse.newest, " until ", w.coarse.root.guard.until, " left ", w.coarse.root.guard.left, " best ", w.coarse.root.guard.best)
				}
				fmt.Println()
			}
		}
	}
}
