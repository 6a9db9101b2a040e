package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/calibration"
	"github.com/p2pdc/p2pdc/internal/output"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

func (a *app) calibrateCommand() *cobra.Command {
	var out, scheme string
	var n, peers, mtu int
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine and write it as a model for simulations",
		Long: `calibrate measures the relaxation rate of this machine, on one core and on all cores,
and the cost of messages between its processes, in about a second. The machine must
be idle. It writes the model this-machine, for --model FILE, in which peers are
processes that share the cores (docs/simulation.md). Caches matter: give --n and
--peers of the runs to measure relaxation on a block of their size. Messages are those
of --scheme: asynchronous ones are not acknowledged and cost less.`,
		Example: "  obstacle calibrate --n 64 --peers 2 --out this-machine.yaml",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if n < 2 || n > 1024 || peers < 1 || peers > n {
				return usage("--n %d --peers %d: want 2 to 1024 points per axis and 1 to n peers", n, peers)
			}
			if mtu != 0 && (mtu < ether.MinMTU || mtu > ether.MaxMTU) {
				return usage("--mtu %d: want %d to %d bytes, or 0 for that of loopback", mtu, ether.MinMTU,
					ether.MaxMTU)
			}
			if _, err := oneOrAll("scheme", scheme, []string{"sync", "async"}); err != nil {
				return err
			}
			if out != "" {
				if err := checkWritable(out); err != nil {
					return err
				}
			}
			block := calibration.Workload{N: n, Peers: peers, MTU: mtu, Asynchronous: scheme == "async"}
			bars := a.bars()
			defer a.closeBars(bars)
			done := bars.Wait("measuring this machine")
			ctx, stop := stoppable(c.Context())
			defer stop()
			d, err := calibration.ThisMachine(ctx, block)
			done()
			if ctx.Err() != nil {
				return &exitError{ExitStopped, errors.New("interrupted while it measured this machine; nothing was written")}
			}
			if err != nil {
				return failed(err)
			}
			return a.writeModel(ctx, d.Name, clusterfile.Format(d), out)
		},
	}
	c.Flags().IntVar(&n, "n", 96, "points per axis of the grid")
	c.Flags().IntVar(&peers, "peers", 1, "peers among which the grid is divided")
	c.Flags().IntVar(&mtu, "mtu", 0, "largest IP packet in bytes (0: that of loopback)")
	c.Flags().StringVar(&scheme, "scheme", "sync", "scheme whose messages are timed: sync or async")
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

func (a *app) writeModel(ctx context.Context, name string, text []byte, file string) error {
	if file == "" {
		_, err := a.out.Write(text)
		return failed(err)
	}
	err := limited(ctx, patience(defaultPeerTimeout, len(text)), func() error {
		return output.Save(file, func(w io.Writer) error { _, err := w.Write(text); return err })
	})
	if err != nil {
		fmt.Fprintf(a.err, "%s", text) // so that the measurement is not lost
		return failed(err)
	}
	return a.print(map[string]string{"model": name, "file": file}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: written\n", file)
	})
}
