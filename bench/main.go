// Command bench measures speed and memory, to compare commits, or this project with other programs
// and with the limits of the machine. It prints a table of each part, records it under
// bench/results and makes the tables of docs/performance.md, docs/simulation.md and the pages beside
// the records from them.
//
//	go run ./bench                        every part
//	go run ./bench -list                  what the parts are
//	go run ./bench -only sweep,dispatch   some of them
//	go run ./bench -report                tables of docs from the records, without measuring
//	go run ./bench -against 7e57fed       this tree and that commit, in turn
//
// Everything that is compared runs in turn within each round. Measure on a machine that does
// nothing else: the load is recorded.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
)

func parts() []measure.Part {
	return []measure.Part{
		{Name: "sweep", About: "a sweep at 256³ on one core, in Go, assembly and C", Measure: sweeps},
		{Name: "kernels", About: "every kernel on one core and two, beside memory bandwidth and C", Measure: kernels},
		{Name: "dispatch", About: "handlers of the micro-protocol kernel and of a segment", Measure: dispatch},
		{Name: "memory", About: "memory of a peer at 256³ on two peers", Measure: memory},
		{Name: "speedup", About: "two peers over shared memory and UDP, against one", Measure: speedup},
		{Name: "multigrid", About: "the membrane by multigrid: time, processor time, memory", Measure: multigrid},
		{Name: "allocations", About: "allocations per sweep of the halo exchange", Measure: allocations},
		{Name: "adapt", About: "changes of a session's mode, alone and in time steps", Measure: adapt},
		{Name: "transport", About: "P2PSAP beside TCP, QUIC, MPI and plain datagrams", Measure: transport},
		{Name: "layers", About: "a trip through the layers of a session over UDP, polling and asleep", Measure: layers},
		{Name: "trace", About: "cost of a trace: a record, and trips of 8 bytes", Measure: traces},
		{Name: "age", About: "age of asynchronous halos on a wire that is offered five times its rate", Measure: age},
		{Name: "rdma", About: "the modes of the InfiniBand link, over software adapters", Measure: rdma},
		{Name: "survive", About: "losses of peers and hosts, and what recovery costs without one", Measure: survive},
		{Name: "copies", About: "runs that keep copies of their iterates, with a loss and without", Measure: copies},
		{Name: "parts", About: "peers with several parts: cost, moves, balance", Measure: partsOfPeers},
		{Name: "losses", About: "lost peers in virtual time: 10 of 16 in one run, and one of 4096", Measure: losses},
		{Name: "predictions", About: "runs that lose a process, beside simulations of them", Measure: predictions},
		{Name: "simulator", About: "cost of simulating: numerics, segments a second, 4096 peers", Measure: simulator},
	}
}

func main() {
	flow.Main() // does not return in a process that is the end of a flow
	measure.Main("bench", run)
}

func run(ctx context.Context) error {
	p := measure.Program{Name: "bench", Parts: parts()}
	p.Flags()
	var e endpoint
	n := flag.Int("kernels", 0, "run kernels on an n³ block as commanded on stdin (for processes of this program)")
	flag.StringVar(&e.kind, "end", "", "be one end of a transport (for processes of this program)")
	flag.StringVar(&e.host, "host", "127.0.0.1", "address of this end")
	flag.StringVar(&e.call, "call", "", "address of the other end; without it this end waits to be called")
	base := flag.String("against", "", "compare this tree with a commit, built in a temporary worktree, in turn")
	report := flag.Bool("report", false, "make the tables of docs/performance.md and docs/simulation.md from the records")
	if err := p.Parse(); err != nil {
		return err
	}
	switch {
	case *n > 0:
		return workKernels(*n, os.Stdin, os.Stdout)
	case e.kind != "":
		return e.serve(ctx, os.Stdin, os.Stdout)
	case *base != "":
		return against(ctx, *base, &p)
	case *report:
		root, err := measure.ModuleRoot(ctx)
		if err != nil {
			return err
		}
		return measure.Report(root)
	}
	return p.Measure(ctx)
}
