package iteratetest_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// half is one of two blocks: x ← factor·y + 1, where y is the value of the other block.
type half struct {
	other  iterate.Rank
	factor float64
}

func (h half) Values() int                     { return 1 }
func (h half) Start([]float64)                 {}
func (h half) Relax(next, _, ghosts []float64) { next[0] = h.factor*ghosts[0] + 1 }

func (h half) Neighbours() []iterate.Neighbour {
	return []iterate.Neighbour{{Rank: h.other, Send: []int{0}, Receive: []int{0}}}
}

// A contraction passes; an iteration that grows does not.
func ExampleSuite() {
	for _, factor := range []float64{0.5, 2} {
		s := iteratetest.Suite{Blocks: []iterate.Block{half{1, factor}, half{0, factor}}, MaxSweeps: 1000}
		fmt.Println(s.Check())
	}
	// Output:
	// <nil>
	// iteratetest: scheme sync, network 0: peer 0 ended after 400 sweeps with a residual of 3.94e+115: diverged
}
