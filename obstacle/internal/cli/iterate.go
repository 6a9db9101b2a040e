package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

type iterateFlags struct {
	peers, clusters int
	scheme, out     string
	tol             float64
	maxSweeps       uint64
	maxTime         time.Duration
}

type iterated struct {
	Iteration string          `json:"iteration"`
	Scheme    string          `json:"scheme"`
	Peers     int             `json:"peers"`
	Converged bool            `json:"converged"`
	Reason    string          `json:"reason"`
	Tolerance float64         `json:"tolerance"`
	Residual  nullable.Number `json:"relative_residual"` // as the peers measured it
	Sweeps    []uint64        `json:"sweeps"`            // by rank
	Seconds   float64         `json:"seconds"`           // of the slowest peer
	Messages  uint64          `json:"messages"`
	Bytes     uint64          `json:"bytes"`
	Outputs   []report.Output `json:"outputs"`
	Version   string          `json:"version"`
}

func (a *app) iterateCommand() *cobra.Command {
	q := &iterateFlags{}
	c := &cobra.Command{
		Use:   "iterate NAME",
		Short: "Run an iteration that a program of your own adds",
		Long: `iterate runs the iteration x ← F(x) of that name on peers of this process, which
exchange their values over sockets. This program has no iteration; a main package of
your own adds them (docs/cli.md, A program of your own).

Exit codes are those of solve.`,
		Example: "  obstacle iterate pagerank --peers 4 --scheme async",
		Args:    oneArgument("iteration"),
		RunE:    func(c *cobra.Command, args []string) error { return a.iterate(c.Context(), q, args[0]) },
	}
	f := c.Flags()
	f.IntVar(&q.peers, "peers", 2, "number of peers")
	f.IntVar(&q.clusters, "clusters", 0, "number of clusters that the peers form, for --scheme hybrid")
	schemeFlag(f, &q.scheme, a.catalog)
	f.Float64Var(&q.tol, "tol", 1e-6, "residual at which to stop, relative to that of the starting values")
	f.Uint64Var(&q.maxSweeps, "max-sweeps", 0, "stop after this number of sweeps (0: no bound)")
	f.DurationVar(&q.maxTime, "max-time", 0, "stop after this time (0: no bound)")
	f.StringVar(&q.out, "out", "", "write the values to this file: lines of rank, index, value")
	return c
}

func (a *app) iterate(ctx context.Context, q *iterateFlags, name string) error {
	known := a.catalog.Iterations.Names()
	block, err := a.catalog.Iterations.Lookup("", name)
	switch {
	case len(known) == 0:
		return usage("no iteration %q: this program has none (docs/cli.md, A program of your own)", name)
	case err != nil:
		return usage("no iteration %q%s; there are %s", name, spelling.Suggest(name, known), strings.Join(known, ", "))
	case q.peers < 1 || q.peers > 1024:
		return usage("--peers %d: want 1 to 1024", q.peers)
	case q.clusters < 0 || q.clusters > q.peers:
		return usage("--clusters %d: want 1 to %d, the number of peers, or 0", q.clusters, q.peers)
	case !(q.tol > 0 && q.tol < 1):
		return usage("--tol %v: want a number above 0 and below 1", q.tol)
	}
	labels := make([]string, q.peers)
	for r := range labels {
		if q.clusters > 0 {
			labels[r] = strconv.Itoa(r * q.clusters / q.peers)
		}
	}
	scheme, err := a.catalog.Scheme(q.scheme, labels)
	if err != nil {
		return badInput(err)
	}
	if q.out != "" {
		if err := checkWritable(q.out); err != nil {
			return err
		}
	}
	blocks := make([]iterate.Block, q.peers)
	for r := range blocks {
		if blocks[r], err = block(iterate.Rank(r), q.peers); err != nil {
			return badInput(err)
		}
	}
	ctx, stop := stoppable(ctx)
	defer stop()
	x, err := solver.Iterate(ctx, solver.Iteration{
		Blocks: blocks, Scheme: scheme, Tolerance: q.tol, MaxSweeps: iterate.Iteration(q.maxSweeps), MaxTime: q.maxTime,
		Log: slog.New(zerolog.NewSlogHandler(a.log)),
	})
	switch {
	case errors.Is(err, solver.ErrOptions):
		return badInput(err)
	case err != nil && !errors.Is(err, solver.ErrNotConverged):
		return failed(err)
	}
	return a.answerIteration(ctx, q, name, scheme, x)
}

// writeIterate writes lines of rank, index, value.
func writeIterate(w io.Writer, x *solver.Iterated) error {
	for rank, values := range x.X {
		for i, v := range values {
			if _, err := fmt.Fprintf(w, "%d,%d,%.17g\n", rank, i, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) answerIteration(ctx context.Context, q *iterateFlags, name string, scheme iterate.Scheme, x *solver.Iterated) error {
	files := &writings{}
	s := iterated{
		Iteration: name, Scheme: scheme.Name(), Peers: q.peers, Tolerance: q.tol, Reason: x.Reason.String(),
		Converged: x.Reason == iterate.Converged, Residual: nullable.Number(x.Peers[0].Residual),
		Outputs: []report.Output{}, Version: build.Version(),
	}
	for _, r := range x.Peers {
		messages, bytes := r.Messages()
		s.Messages, s.Bytes = s.Messages+messages, s.Bytes+bytes
		s.Sweeps, s.Seconds = append(s.Sweeps, uint64(r.Sweeps)), max(s.Seconds, r.Elapsed.Seconds())
	}
	if q.out != "" {
		values := 0
		for _, u := range x.X {
			values += len(u)
		}
		files.wait(defaultPeerTimeout, outputBytes*values)
		files.begin(q.out, func() error { return output.Save(q.out, func(w io.Writer) error { return writeIterate(w, x) }) })
		s.Outputs = files.prompt(ctx)
	}
	err := a.print(s, func(w io.Writer) {
		fmt.Fprintf(w, "%s, %s, %d peers: %s, relative residual %.3e after %d sweeps, %.3f s\n",
			s.Iteration, s.Scheme, s.Peers, s.Reason, s.Residual, s.Sweeps, s.Seconds)
		report.Lines(w, s.Outputs)
	})
	if err = errors.Join(err, a.finish(ctx, files)); err == nil && !s.Converged {
		return &exitError{code: ExitStopped}
	}
	return err
}
