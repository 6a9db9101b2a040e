package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/obstacle/internal/build"
)

// version is the JSON of obstacle version.
type version struct {
	Version   string `json:"version"`
	Toolchain string `json:"toolchain"`
	Protocols string `json:"protocols"`
	build.Info
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version and how it was built",
		Example: `  obstacle version
  obstacle version --format json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := version{build.Version(), build.Toolchain(), build.Fingerprint(a.catalog), build.Describe()}
			return a.print(v, v.text)
		},
	}
}

func (v version) text(w io.Writer) {
	fmt.Fprintf(w, "obstacle %s, %s, protocols %.12s\n", v.Version, v.Toolchain, v.Protocols)
	if v.Commit != "" {
		modified := ""
		if v.Modified {
			modified = ", with changes that were not committed"
		}
		fmt.Fprintf(w, "commit    %s of %s%s\n", v.Commit, v.CommitTime, modified)
	}
	settings := []string{}
	for _, k := range slices.Sorted(maps.Keys(v.Settings)) {
		if v.Settings[k] != "" {
			settings = append(settings, k+"="+v.Settings[k])
		}
	}
	fmt.Fprintf(w, "built by  %s, tags %s, %s\n", v.Compiler, cmp.Or(strings.Join(v.Tags, ","), "none"),
		strings.Join(settings, " "))
}
