package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// schemeFlag defines --scheme.
func schemeFlag(f *pflag.FlagSet, v *string, c *catalog.Set) {
	f.StringVar(v, "scheme", "sync", "scheme of iteration: "+strings.Join(c.Schemes.Help(), "; "))
}

// rowFlags add optional rows to Table I.
type rowFlags struct {
	congestion string
	names      []string // of --rows
}

func (r *rowFlags) add(f *pflag.FlagSet, c *catalog.Set) {
	f.StringVar(&r.congestion, "congestion", "newreno",
		"congestion control of reliable sessions between clusters: "+
			catalog.Words(c.Protocols.Labels(ctp.GroupCongestion)))
	var rows []string
	for _, row := range c.Protocols.Rows("") {
		rows = append(rows, row.Label+" ("+row.Help+")")
	}
	f.StringSliceVar(&r.names, "rows", nil,
		"optional micro-protocols, NAME:key=value,…, added to the compositions of Table I: "+strings.Join(rows, ", "))
	f.BoolFunc("negative-ack", "the same as --rows NegativeAck", func(string) error {
		if !slices.Contains(r.names, negativeAck) {
			r.names = append(r.names, negativeAck)
		}
		return nil
	})
}

const negativeAck = "NegativeAck"
