package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group is a heading in the help of a command and the flags below it.
type group struct {
	title string
	flags []string
}

// groups are those of the commands that solve. A flag of no group is one of the few that --help explains.
func groups() []group {
	return []group{
		{"Method", []string{
			"step", "omega", "sweeps-per-pass", "cycle", "local", "overlap", "inner-cycles", "coarse", "flexible",
			"order",
		}},
		{"Start, end and answer", []string{"initial", "max-sweeps", "out-every", "enclose", "enclose-sweeps", "seed"}},
		{"Checkpoints", []string{"checkpoint", "checkpoint-every"}},
		{"Partition", []string{"partition", "weights", "balance", "parts", "join", "leave", "slowdown"}},
		{"Simulation", []string{"stand-in", "no-overlap", "csv"}},
		{"Protocol", []string{
			"clusters", "topology", "step-mode", "congestion", "rows", "negative-ack", "protect", "mtu", "peer-timeout",
		}},
		{"Lost peers", []string{"recover", "spares", "elastic", "keepers", "suspect", "lose", "kill", "cut"}},
		{"Network", []string{
			"network", "ib-device", "ib-port", "ib-gid", "ib-mode", "ib-blocks", "ib-block-bytes", "ib-completion",
		}},
		{"Processes and machines", []string{"in-process", "pin", "rendezvous", "secret-file", "join-timeout"}},
		{"Batch systems, MPI launchers and ssh", []string{"engine", "meet", "continue", "hosts", "ssh", "remote-program"}},
		{"Observation", []string{
			"http", "http-token", "http-token-file", "report", "metrics", "status", "trace", "trace-size", "trace-frames", "trace-steps",
		}},
	}
}

const (
	helpAll   = "help-all"
	helpWidth = 110
)

// grouped sorts the flags in the help of a command. --help explains those of no group and lists the others, --help-all
// explains all.
func grouped(c *cobra.Command) *cobra.Command {
	c.Flags().Bool(helpAll, false, "explain every flag")
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
		all, _ := c.Flags().GetBool(helpAll)
		of := groups()
		explain(w, "Flags", flagsOf(c, func(name string) bool {
			return !slices.ContainsFunc(of, func(g group) bool { return slices.Contains(g.flags, name) })
		}))
		if !all {
			fmt.Fprintf(w, "\nMore flags, explained by %s --help-all:\n", c.CommandPath())
		}
		for _, g := range of {
			flags := flagsOf(c, func(name string) bool { return slices.Contains(g.flags, name) })
			if all {
				explain(w, g.title, flags)
			} else {
				list(w, g.title, flags)
			}
		}
		explain(w, "Global flags", c.InheritedFlags())
		return nil
	})
	return c
}

func flagsOf(c *cobra.Command, wanted func(name string) bool) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if wanted(f.Name) {
			out.AddFlag(f)
		}
	})
	return out
}

func explain(w io.Writer, title string, f *pflag.FlagSet) {
	if f.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, f.FlagUsagesWrapped(helpWidth))
	}
}

func list(w io.Writer, title string, f *pflag.FlagSet) {
	line, indent := fmt.Sprintf("  %-24s", title), strings.Repeat(" ", 26)
	if !f.HasAvailableFlags() {
		return
	}
	f.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if len(line)+len(f.Name) > helpWidth-3 {
			fmt.Fprintln(w, line)
			line = indent
		}
		line += " --" + f.Name
	})
	fmt.Fprintln(w, line)
}
