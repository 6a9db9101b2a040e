// Command bench measures what the project promises of its speed and memory, as
// ratios taken in one run, prints a table and records it under bench/results.
//
//	go run ./bench                        everything
//	go run ./bench -only sweep,dispatch   some of it
//	go run ./bench -rounds 15             more rounds; medians and spreads are over rounds
//
// Measure on a machine that does nothing else: the load is recorded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// part is one group of measurements.
type part struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
}

func parts() []part {
	return []part{
		{"sweep", "a sweep at 256³ on one core, in Go, assembly and C", sweeps},
		{"kernels", "every kernel beside the memory's bandwidth and loops in C, on one core and on two", kernels},
		{"dispatch", "five handlers dispatched by the micro-protocol kernel", dispatch},
		{"memory", "a peer's memory at 256³ on two peers", memory},
		{"speedup", "two peers against one at 128³", speedup},
		{"allocations", "allocations per sweep of the halo exchange", allocations},
		{"adapt", "changes of a session's mode, and what they do to a run in time steps", adapt},
		{"transport", "our transport beside TCP, QUIC and MPI", transport},
		{"rdma", "the InfiniBand link's three ways to carry a message, over adapters of software", rdma},
		{"schemes", "synchronous against asynchronous in virtual time: staleness, a slow peer, two sites", schemes},
		{"published", "the 20 cells of the 2013 paper's table, predicted by the virtual cluster; figure 5", predictPublished},
		{"petsc", "the membrane by multigrid beside PETSc's solvers of variational inequalities", petsc},
		{"schwarz", "exchanges of the Schwarz method by peers, overlap and coarse correction", exchanges},
		{"whatif", "the published cluster with what the paper did not have", whatif},
		{"efficiency", "Richardson's efficiency on the described clusters, to 4096 machines", efficiencies},
		{"map", "where each scheme wins: imbalance, latency, faults", maps},
		{"scale", "what the virtual cluster itself takes: real numerics, segments a second, 4096 peers", scale},
		{"home", "the simulator, calibrated here, beside real runs over loopback", athome},
		{"lab", "goodput and shares over an emulated link that loses packets", goodputs},
	}
}

// bench is what the parts share.
type bench struct {
	root   string // of the module
	tmp    string // for what is built
	rounds int
	dry    bool // nothing is written
	report report
}

func main() {
	flowEnd()
	worker := flag.Int("worker", 0, "relax an n³ block as told on stdin (used by this program itself)")
	loops := flag.Int("kernels", 0, "run kernels on an n³ block as told on stdin (used by this program itself)")
	endOf := flag.String("end", "", "be one end of a transport (used by this program itself)")
	host := flag.String("host", "127.0.0.1", "address of this end")
	call := flag.String("call", "", "address of the other end; without it this end waits to be called")
	only := flag.String("only", "", "comma-separated parts: "+names())
	rounds := flag.Int("rounds", 9, "rounds of each interleaved comparison")
	dry := flag.Bool("dry", false, "record nothing")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	case *rounds < 1:
		err = fmt.Errorf("-rounds %d: at least 1", *rounds)
	case *worker > 0:
		err = work(*worker, os.Stdin, os.Stdout)
	case *loops > 0:
		err = workKernels(*loops, os.Stdin, os.Stdout)
	case *endOf != "":
		err = serveEnd(ctx, *endOf, *host, *call, os.Stdin, os.Stdout)
	default:
		err = measure(ctx, *only, *rounds, *dry)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names() string {
	var out []string
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return strings.Join(out, ",")
}

// measure runs the parts asked for. A part that cannot run is said to be skipped
// and does not stop the others.
func measure(ctx context.Context, only string, rounds int, dry bool) error {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, w := range wanted {
		if !slices.ContainsFunc(parts(), func(p part) bool { return p.name == w }) {
			return fmt.Errorf("-only %s: there are %s", w, names())
		}
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "p2pdc-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	b := &bench{root: root, tmp: tmp, rounds: rounds, dry: dry}
	b.report.begin(ctx, root, rounds)
	for _, p := range parts() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, p.about)
		if err := p.run(ctx, b); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			b.report.add(measurement{Part: p.name, Name: p.about, Note: "not measured: " + err.Error()})
		}
	}
	b.report.end()
	fmt.Print(b.report.table())
	if dry {
		return nil
	}
	return b.report.write(filepath.Join(root, "bench", "results"))
}

// moduleRoot is the directory of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("run it inside the module")
	}
	return filepath.Dir(mod), nil
}

// command runs a program in the module's root and gives its standard output; an
// error carries the last lines of its standard error.
func (b *bench) command(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	return out, nil
}
