package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/simulate/cluster/calibration"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

// thisMachine is the model that is made by measuring.
const thisMachine = "this-machine"

// openModel reads the word of --model. this-machine is measured with blocks as those of b.
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

// blockOf is what this-machine is measured with for a run: the block of a cube with as many
// points a side as the longest of --n, among the most peers; any, where that makes no sense,
// which is said elsewhere.
func (q *request) blockOf(machines ...int) calibration.Workload {
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
		Short: "List the clusters that can be simulated, or say what one of them is",
		Long: `clusters lists the built-in models of clusters; with a name, or a file, it says what
the model means and where its figures come from. --yaml prints a model as a file to
start from. this-machine is measured when it is asked for.`,
		Example: "  obstacle clusters graphene-eth\n  obstacle clusters this-machine --yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("obstacle clusters wants one name or file at most, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if text {
					return usage("--yaml: of which cluster? Give one of those that obstacle clusters lists, or a file")
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
	c.Flags().BoolVar(&text, "yaml", false, "print the description itself")
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
		fmt.Fprintf(w, "%s\n  The machine that this program runs on, measured when it is asked for.\n", thisMachine)
	})
}

func (a *app) explain(f *clusterfile.File) error {
	e := clusterfile.Explain(&f.Description)
	e.Builtin = f.Builtin
	return a.print(e, func(w io.Writer) { fmt.Fprint(w, e) })
}
