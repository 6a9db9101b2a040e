package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

func (a *app) problemsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "problems",
		Short:   "List the built-in problems with their parameters and references",
		Example: "  obstacle problems --format json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			type entry struct {
				Name       string               `json:"name"`
				Dimension  int                  `json:"dimension"`
				Summary    string               `json:"summary"`
				Reference  string               `json:"reference"`
				Exact      bool                 `json:"has_exact"`
				Parameters []problems.Parameter `json:"parameters"`

				text func(problems.Parameter) string
			}
			all := struct {
				Problems []entry `json:"problems"`
			}{}
			for _, b := range a.catalog.Problems.All() {
				parameters := append([]problems.Parameter{}, b.Parameters...)
				all.Problems = append(all.Problems,
					entry{b.Name, b.Dimension, b.Summary, b.Reference, b.Exact, parameters, b.Text})
			}
			return a.print(all, func(w io.Writer) {
				for _, p := range all.Problems {
					exact := ""
					if p.Exact {
						exact = ", exact solution known"
					}
					fmt.Fprintf(w, "%s (%d-D%s)\n  %s\n  %s\n", p.Name, p.Dimension, exact, p.Summary, p.Reference)
					for _, q := range p.Parameters {
						fmt.Fprintf(w, "  --param %s=%s  %s\n", q.Name, p.text(q), q.Summary)
					}
				}
			})
		},
	}
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a problem file or the description of a cluster, and describe it",
		Long: `check reads a problem file (docs/problems.md) with its arrays, builds the problem on
a coarse grid and describes it, or reports what is wrong. It does the same with the
description of a cluster (docs/simulation.md). It does not solve.`,
		Example: "  obstacle check examples/problems/terrain.yaml",
		Args:    oneArgument("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			if clusterfile.Detect(args[0]) {
				f, err := clusterfile.Open(args[0])
				if err != nil {
					return badInput(err)
				}
				return a.explain(f)
			}
			if err := checkProblemFile(args[0]); err != nil {
				return err
			}
			d, err := file.Check(a.catalog.Problems, args[0])
			if err != nil {
				return badInput(err)
			}
			return a.print(d, func(w io.Writer) { fmt.Fprint(w, d) })
		},
	}
}
