package multilevel

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// threadPool is an Executor of that many goroutines.
type threadPool int

func (c threadPool) Threads() int { return int(c) }

func (c threadPool) For(n int, f func(int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	for range min(int(c), n) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
}

// BenchmarkCycle runs the start and the cycles of multigrid that solve the membrane. With P2PDC_STAGES set it prints
// the time per kind of stage and level: the minimum over all rounds, in ms.
func BenchmarkCycle(b *testing.B) {
	names := []string{"relax", "restrict", "solve", "prolong", "data", "interpolate", "measure"}
	for _, n := range []int{63, 127, 255} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%d/threads=%d", n, threads), func(b *testing.B) {
				p := solvertest.Membrane([3]int{n, n, n}, 3)
				part, err := problem.Slabs(p.N, 1, nil)
				require.NoError(b, err)
				exec := problem.Executor(problem.Sequential{})
				if threads > 1 {
					exec = threadPool(threads)
				}
				g, err := newPeer(
					problem.Config{
						Problem:   p,
						Partition: part,
						Scheme:    iterate.Synchronous(),
						Method:    problem.MethodConfig{Name: problem.Multigrid},
						Executor:  exec,
					},
				)
				require.NoError(b, err)
				m := g.driver.method.(*multigrid)
				h := &m.plan.hierarchy
				start, cycle := h.Start("", false), h.Cycle("")
				list := append([]method.Stage{}, start...)
				for range 4 {
					list = append(list, cycle...)
				}
				list = method.Fuse(list, func(method.Stage) bool { return true })
				var stages [][]stage
				for _, s := range list {
					stages = append(stages, m.appendStage(nil, s, false))
				}
				least := make([]time.Duration, len(list))
				for b.Loop() {
					m.squares()
					for i := range stages {
						at := time.Now()
						for j := range stages[i] {
							doStage(g, &stages[i][j])
						}
						if d := time.Since(at); least[i] == 0 || d < least[i] {
							least[i] = d
						}
					}
				}
				spent, total := map[[2]int]time.Duration{}, time.Duration(0)
				for i, s := range list {
					spent[[2]int{int(s.Kind), s.Level}] += least[i]
					total += least[i]
				}
				b.ReportMetric(total.Seconds()*1e3, "least-ms")
				sum := m.squares()
				b.ReportMetric(sum.Float64(), "squares")
				if os.Getenv("P2PDC_STAGES") == "" {
					return
				}
				for k, name := range names {
					fmt.Fprintf(os.Stderr, "%-12s", name)
					for l := range h.Grids {
						fmt.Fprintf(os.Stderr, "%8.2f", spent[[2]int{k, l}].Seconds()*1e3)
					}
					fmt.Fprintln(os.Stderr)
				}
			})
		}
	}
}

func doStage(g *peer, s *stage) {
	if s.kind == stageDo {
		s.do()
		return
	}
	g.stage = s
	for g.at = range s.steps {
		if s.runAll != nil {
			s.runAll()
		} else {
			g.exec.For(s.steps[g.at].Chunks, g.runPieceFunc)
		}
	}
}
