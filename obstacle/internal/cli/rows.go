package cli

import (
	"fmt"
	"slices"
	"strconv"
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
	f.BoolFunc("negative-ack", "true or false: the same as --rows NegativeAck", func(text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q: want true or false", text)
		}
		if r.names = slices.DeleteFunc(r.names, func(n string) bool { return n == negativeAck }); on {
			r.names = append(r.names, negativeAck)
		}
		return nil
	})
}

const negativeAck = "NegativeAck"
