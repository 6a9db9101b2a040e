package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// schemeFlag defines --scheme.
func schemeFlag(f *pflag.FlagSet, v *string, c *catalog.Set) {
	f.StringVar(v, "scheme", "sync", "scheme of iteration: "+strings.Join(c.Schemes.Help(), "; "))
}

// rowFlags adds the flags that add optional rows to Table I.
func rowFlags(f *pflag.FlagSet, run *rendezvous.Spec, c *catalog.Set) {
	f.StringVar(&run.Congestion, "congestion", "newreno",
		"congestion control of reliable sessions between clusters: "+
			catalog.Words(c.Protocols.Labels(ctp.GroupCongestion)))
	var rows []string
	for _, row := range c.Protocols.Rows("") {
		rows = append(rows, row.Label+" ("+row.Help+")")
	}
	f.StringSliceVar(&run.Rows, "rows", nil,
		"optional micro-protocols, NAME:key=value,…, added to the compositions of Table I: "+strings.Join(rows, ", "))
	f.BoolFunc("negative-ack", "true or false: the same as --rows NegativeAck", func(text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q: want true or false", text)
		}
		if run.Rows = slices.DeleteFunc(run.Rows, func(n string) bool { return n == negativeAck }); on {
			run.Rows = append(run.Rows, negativeAck)
		}
		return nil
	})
}

const negativeAck = "NegativeAck"
