// Command experiments repeats the experiments that docs/performance.md and other documents report:
// published measurements predicted on virtual clusters, comparisons of schemes and methods, PETSc
// beside this program, the simulator beside real runs. Each prints a table and is recorded under
// experiments/results; some also write figures and tables of documents.
//
//	go run ./experiments -list             what the experiments are
//	go run ./experiments -only published   some of them
//	go run ./experiments                   all of them: hours
package main

import (
	"context"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
)

func parts() []measure.Part {
	return []measure.Part{
		{Name: "published", About: "the 20 cells of the 2013 paper's table, predicted; figure 5",
			Measure: predictPublished},
		{Name: "whatif", About: "the published cluster with what the paper did not have", Measure: whatIf},
		{Name: "efficiency", About: "Richardson on the described clusters, up to 4096 machines", Measure: efficiencies},
		{Name: "schemes", About: "schemes in virtual time: old values, a slow peer, two sites", Measure: schemes},
		{Name: "best", About: "the best synchronous, the best asynchronous method, one machine alone", Measure: bestOf},
		{Name: "map", About: "synchronous against asynchronous by imbalance and latency", Measure: ratioMaps},
		{Name: "faults", About: "schemes with pauses, losses, a cut network, a lost machine", Measure: faults},
		{Name: "schwarz", About: "exchanges of Schwarz by peers, overlap and coarse correction", Measure: schwarz},
		{Name: "petsc", About: "multigrid beside PETSc's solvers of variational inequalities", Measure: petsc},
		{Name: "localhost", About: "the simulator, calibrated here, beside real runs over loopback", Measure: validate},
		{Name: "cables", About: "pauses of sessions when one of two cables is pulled", Measure: cables},
		{Name: "goodput", About: "goodput over an emulated link that loses packets", Measure: goodput},
		{Name: "shares", About: "shares of two flows on one emulated link", Measure: shares},
	}
}

func main() {
	flow.Main() // does not return in a process that is the end of a flow
	measure.Main("experiments", func(ctx context.Context) error {
		p := measure.Program{Name: "experiments", Parts: parts()}
		p.Flags()
		if err := p.Parse(); err != nil {
			return err
		}
		return p.Measure(ctx)
	})
}
