package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/page"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A page gets values of a simulated run while it goes on, and the blocks are read only when somebody looks. Several runs
// go on at the same time.
func TestFieldsOfSimulatedRuns(t *testing.T) {
	p := built(t, "membrane", 4, 4, 4)
	to := &pages{Shared: monitor.NewShared(), fields: newFields()}
	var runs []*observedVirtual
	for range 2 {
		o := &observedVirtual{id: to.Begin(monitor.Info{Peers: 2}), to: to}
		o.field = to.fields.begin(o.id, p)
		runs = append(runs, o)
	}
	read := 0
	progress := func(run int) simulate.Progress {
		return simulate.Progress{
			Virtual: 3 * time.Second, Ranks: func() []simulate.RankResult { return make([]simulate.RankResult, 2) },
			Blocks: func(f func(problem.Box, func([]float64, problem.Box))) {
				read++
				for half := range 2 {
					f(problem.Box{Lo: [3]int{0, 0, 2 * half}, Hi: [3]int{4, 4, 2*half + 2}}, func(dst []float64, part problem.Box) {
						for i := range dst {
							dst[i] = float64(100*run + part.Lo[2])
						}
					})
				}
			},
		}
	}
	for run, o := range runs {
		o.watch(progress(run))
	}
	require.Zero(t, read, "nobody looks")
	for run, o := range runs {
		got := make(chan *page.Values)
		go func() {
			v, _ := to.fields.Values(t.Context(), page.Wanted{Run: o.id, Axis: 0, Plane: 1})
			got <- v
		}()
		await.Until(t, func() bool {
			runs[1-run].watch(progress(1 - run)) // its values were not requested
			o.watch(progress(run))
			return read == run+1
		}, "the request")
		v := <-got
		require.Equal(t, 3.0, v.Elapsed)
		require.Equal(t, [3]int{1, 4, 4}, v.Size)
		for i, u := range v.U {
			require.Equal(t, float64(100*run+i/4), u)
		}
	}
}
