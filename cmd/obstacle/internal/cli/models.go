package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/cluster/calibration"
	clusterfile "github.com/p2pdc/p2pdc/internal/cluster/file"
)

// thisMachine is the model that is made by measuring.
const thisMachine = "this-machine"

// openModel reads the word of --model.
func (a *app) openModel(ref string) (*clusterfile.File, error) {
	if ref == thisMachine {
		d, err := calibration.ThisMachine(context.Background(), calibration.Block{})
		if err != nil {
			return nil, failed(err)
		}
		f, err := clusterfile.Of(d)
		return f, failed(err)
	}
	f, err := clusterfile.Open(ref, thisMachine)
	return f, badInput(err)
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
				return a.listClusters()
			}
			f, err := a.openModel(args[0])
			if err != nil {
				return err
			}
			if !text {
				return a.explain(f)
			}
			yaml, builtin := clusterfile.Text(args[0])
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
	for _, name := range clusterfile.Names() {
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
