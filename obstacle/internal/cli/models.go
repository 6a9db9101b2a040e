package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/calibration"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

// thisMachine is the model that is made by measuring.
const thisMachine = "this-machine"

// openModel opens the model that --model names. this-machine is measured on blocks like b.
func (a *app) openModel(ref string, b calibration.Workload) (*clusterfile.File, error) {
	if ref == thisMachine {
		d, err := calibration.ThisMachine(context.Background(), b)
		if err != nil {
			return nil, failed(err)
		}
		f, err := clusterfile.New(d)
		return f, failed(err)
	}
	f, err := clusterfile.Open(ref, thisMachine)
	return f, badInput(err)
}

// calibrationBlock returns the block on which this-machine is measured for a run: that of a cube with the longest
// side of --n, divided among the largest number of peers. Other checks report invalid values.
func (q *request) calibrationBlock(machines ...int) calibration.Workload {
	n, err := numbers("n", q.n)
	b := calibration.Workload{}
	if err == nil && len(n) > 0 && len(machines) > 0 {
		b = calibration.Workload{N: slices.Max(n), Peers: slices.Max(machines)}
	}
	if b.N < 2 || b.N > 256 || b.Peers < 1 || b.Peers > b.N {
		return calibration.Workload{}
	}
	return b
}

func (a *app) clustersCommand() *cobra.Command {
	var text bool
	c := &cobra.Command{
		Use:   "clusters [NAME|FILE]",
		Short: "List the clusters that can be simulated, or describe one",
		Long: `clusters lists the built-in models of clusters. With a name or a file it describes
the model and the sources of its parameters. --yaml prints the model as a file to
start from. this-machine is measured on demand.`,
		Example: "  obstacle clusters graphene-eth\n  obstacle clusters this-machine --yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("obstacle clusters takes at most one name or file, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if text {
					return usage("--yaml needs the name of a cluster (obstacle clusters lists them) or a file")
				}
				return a.listClusters()
			}
			f, err := a.openModel(args[0], calibration.Workload{})
			if err != nil {
				return err
			}
			if !text {
				return a.explain(f)
			}
			yaml, builtin := clusterfile.BuiltinText(args[0])
			if !builtin {
				yaml = clusterfile.Format(&f.Description)
			}
			_, err = a.out.Write(yaml)
			return failed(err)
		},
	}
	c.Flags().BoolVar(&text, "yaml", false, "print the model as a file")
	return c
}

func (a *app) listClusters() error {
	all := struct {
		Clusters []clusterfile.Explanation `json:"clusters"`
	}{}
	for _, name := range clusterfile.Builtins() {
		f, err := clusterfile.Open(name)
		if err != nil {
			return failed(err)
		}
		e := clusterfile.Explain(&f.Description)
		e.Builtin = true
		all.Clusters = append(all.Clusters, e)
	}
	return a.print(all, func(w io.Writer) {
		for _, e := range all.Clusters {
			fmt.Fprintf(w, "%s\n  %s\n", e.Name, e.About)
		}
		fmt.Fprintf(w, "%s\n  The machine that this program runs on, measured on demand.\n", thisMachine)
	})
}

func (a *app) explain(f *clusterfile.File) error {
	e := clusterfile.Explain(&f.Description)
	e.Builtin = f.Builtin
	return a.print(e, func(w io.Writer) { fmt.Fprint(w, e) })
}
