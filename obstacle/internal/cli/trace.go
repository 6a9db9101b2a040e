package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/traces"
	"github.com/p2pdc/p2pdc/trace"
)

func (a *app) traceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Read the traces of a run",
		Long: `trace reads what solve --trace, peer --trace and simulate --trace have recorded. Give it
the files of all peers of a run: their clocks are compared by what they have exchanged
(docs/traces.md).`,
		Example: "  obstacle solve membrane --n 32 --peers 2 --trace t\n  obstacle trace stats t.0 t.1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("no command %q%s; obstacle trace --help lists the commands", args[0],
					spelling.Suggest(args[0], commandNames(c)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.traceExportCommand(), a.traceStatsCommand())
	return c
}

func (a *app) traceExportCommand() *cobra.Command {
	var format, out string
	c := &cobra.Command{
		Use:   "export FILE...",
		Short: "Write traces in the format of another program",
		Long: `export writes the records of all files together: as text, a line for each; for
Perfetto (https://ui.perfetto.dev); or the frames that --trace-frames kept for Wireshark
and tshark, with docs/p2psap.lua.`,
		Example: "  obstacle trace export t.0 t.1 --format perfetto --out t.pftrace",
		Args:    someFiles,
		RunE: func(c *cobra.Command, args []string) error {
			write := traces.Formats()[format]
			if write == nil {
				return usage("--format %q: want %s", format, strings.Join(formatNames(), ", "))
			}
			s, err := a.readTraces(c.Context(), args)
			if err != nil {
				return err
			}
			if out == "" {
				err = write(s, a.out)
			} else {
				err = output.Save(out, func(w io.Writer) error { return write(s, w) })
			}
			if errors.Is(err, traces.ErrNoFrames) {
				return badInput(err)
			}
			return failed(err)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "text", "format of the output: "+strings.Join(formatNames(), ", "))
	f.StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

func formatNames() []string { return slices.Sorted(maps.Keys(traces.Formats())) }

func someFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%s takes trace files; see %s --help", c.CommandPath(), c.CommandPath())
	}
	return nil
}

// maxTrace bounds the size of a trace file: the records of a peer with their names.
const maxTrace = 4 * trace.MaxBytes

// readTraces reads the files and reports those that end early.
func (a *app) readTraces(ctx context.Context, names []string) (*traces.Set, error) {
	s, err := traces.Read(names, func(name string) ([]byte, error) {
		text, err := a.readHeaded(ctx, "the trace", name, maxTrace, trace.PreambleBytes, traces.Check)
		if err != nil {
			return nil, openMistake("the trace", name, err, "obstacle solve … --trace "+spelling.Word(name)+" makes one for each peer")
		}
		return text, nil
	})
	if err != nil {
		return nil, badInput(err)
	}
	for _, name := range s.Truncated {
		a.log.Warn().Str("file", name).Msg("the file ends early; what is whole was read")
	}
	return s, nil
}

func (a *app) traceStatsCommand() *cobra.Command {
	var dot bool
	c := &cobra.Command{
		Use:   "stats FILE...",
		Short: "Print the traffic of a run by sessions",
		Long: `stats prints for each direction of each session how often messages of which size were
written, the time between writes, the congestion window at writes and what exceeds it,
lost segments by what showed the loss, and the sums inside clusters (LAN) and between
them (WAN). --dot prints a graph of the peers for Graphviz: WAN red, LAN blue.`,
		Example: "  obstacle trace stats t.0 t.1 --format json",
		Args:    someFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if dot && a.format == "json" {
				return usage("--dot and --format json exclude each other")
			}
			s, err := a.readTraces(c.Context(), args)
			if err != nil {
				return err
			}
			t := s.Stats()
			if dot {
				return failed(t.Dot(a.out))
			}
			return a.print(t, t.Text)
		},
	}
	c.Flags().BoolVar(&dot, "dot", false, "print a graph of the peers for Graphviz")
	return c
}
