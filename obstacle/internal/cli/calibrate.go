package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/simulate/cluster/calibration"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

func (a *app) calibrateCommand() *cobra.Command {
	var out, scheme string
	var n, peers, mtu int
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine, as a model that runs can be simulated on",
		Long: `calibrate measures how fast this machine relaxes, alone and on all its cores, and what
messages between its processes cost, in about a second; it must be doing nothing else.
What it writes is the model this-machine with its figures, for --model FILE: peers
are processes that share the cores (docs/simulation.md). Caches matter: with --n and
--peers the relaxation is measured on a block as those runs have. Messages are those of
--scheme: asynchronous ones are not acknowledged, and cost less.`,
		Example: "  obstacle calibrate --n 64 --peers 2 --out this-machine.yaml",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if n < 2 || n > 1024 || peers < 1 || peers > n {
				return usage("--n %d --peers %d: there should be 2 to 1024 points a side, and 1 to n peers", n, peers)
			}
			if mtu != 0 && (mtu < ether.MinMTU || mtu > ether.MaxMTU) {
				return usage("--mtu %d: there should be %d to %d bytes, or 0 for loopback's", mtu, ether.MinMTU, ether.MaxMTU)
			}
			if scheme != "sync" && scheme != "async" {
				return usage("--scheme %q: want sync or async", scheme)
			}
			if out != "" {
				if err := writable(out); err != nil {
					return err
				}
			}
			d, err := calibration.ThisMachine(c.Context(), calibration.Workload{N: n, Peers: peers, MTU: mtu, Asynchronous: scheme == "async"})
			if err != nil {
				return failed(err)
			}
			return a.writeModel(d.Name, clusterfile.Format(d), out)
		},
	}
	c.Flags().IntVar(&n, "n", 96, "points a side of the grid")
	c.Flags().IntVar(&peers, "peers", 1, "peers that have a block of it each")
	c.Flags().IntVar(&mtu, "mtu", 0, "largest IP packet of messages, in bytes (0: loopback's)")
	c.Flags().StringVar(&scheme, "scheme", "sync", "scheme whose messages are timed: sync or async")
	c.Flags().StringVar(&out, "out", "", "file to write; otherwise the model is printed")
	return c
}

func (a *app) writeModel(name string, text []byte, file string) error {
	if file == "" {
		_, err := a.out.Write(text)
		return failed(err)
	}
	err := save(file, func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil {
		fmt.Fprintf(a.err, "%s", text) // measured in vain otherwise
		return failed(err)
	}
	return a.print(map[string]string{"model": name, "file": file}, func(w io.Writer) { fmt.Fprintf(w, "%s: written\n", file) })
}
