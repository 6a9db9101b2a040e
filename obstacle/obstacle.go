// Package obstacle is the program obstacle, for a main package of your own that adds to its catalogs:
//
//	c := catalog.New()
//	err := c.Problems.Add(problems.Builtin{Name: "dome", Dimension: 2}, dome)
//	…
//	os.Exit(obstacle.Main(c))
//
// examples/own-obstacle is such a program, docs/cli.md describes the commands. Solve and Join run its two main commands for a caller
// from Go.
package obstacle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/cli"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// Main runs the program with the arguments and the streams of this process and returns its exit code. A run starts its
// peers by running the same executable again, so main must add the same to c in every process.
func Main(c *catalog.Set) (exit int) {
	return cli.Main(context.Background(), os.Args[1:], c, os.Stdin, os.Stdout, os.Stderr)
}

// Answer is the answer of a run that Solve has started.
type Answer struct {
	Values    []float64       // of the whole grid, [z][y][x], or the unknowns of an iteration; the best that are known
	Converged bool            // the tolerance is met, by the residual that was recomputed after the run
	Reason    string          // why the run ended: "converged", "sweeps", "time" and others (docs/cli.md)
	Residual  float64         // relative; NaN: not known
	Report    json.RawMessage // all that solve prints with --format json (docs/cli.md)
}

// Solve runs the command solve with arguments, such as "membrane", "--peers", "4", "--recover", "exact", and returns its answer. It
// blocks until the run has ended. A run that ends before the tolerance is met returns its best values without an error. Bad
// arguments and a run that fails are errors; where a failed run has values, they are returned beside the error. The end of ctx ends
// the run at once, without an answer. Warnings and logs go to errs; nil: nowhere.
//
// Unless the arguments say otherwise (--in-process, --rendezvous), each peer is a process that runs this executable again: main must
// begin with RunPeer. During the run, SIGINT and SIGTERM end the run early, not this process.
func Solve(ctx context.Context, c *catalog.Set, errs io.Writer, args ...string) (*Answer, error) {
	var out *Answer
	err := call(ctx, c, errs, "solve", args, func(s *report.Solution, u []float64) {
		text, err := json.Marshal(s)
		if err != nil {
			text = nil
		}
		out = &Answer{
			Values: slices.Clone(u), Converged: s.Converged, Reason: s.Reason, Residual: float64(s.RelativeResidual), Report: text,
		}
	})
	return out, err
}

// Join runs the command peer with arguments, such as "--rendezvous", "host:7000", "--secret-file", "run.secret": this process takes part
// in a run that another one leads, until the run has ended or ctx ends.
func Join(ctx context.Context, c *catalog.Set, errs io.Writer, args ...string) error {
	return call(ctx, c, errs, "peer", args, nil)
}

func call(
	ctx context.Context, c *catalog.Set, errs io.Writer, command string, args []string, answered func(*report.Solution, []float64),
) error {
	if errs == nil {
		errs = io.Discard
	}
	err := cli.Call(ctx, append([]string{command}, args...), c, errs, answered)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("obstacle: %s: %w", command, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("obstacle: %w", err)
	}
	return nil
}

// RunPeer returns at once unless Solve has started this process as a peer. Then it takes part in the run, and ends the process.
func RunPeer(c *catalog.Set) {
	if len(os.Args) > 1 && os.Args[1] == "peer" && slices.Contains(os.Args, "--spawned") {
		os.Exit(Main(c))
	}
}
