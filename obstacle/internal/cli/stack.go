package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/p2psap"
)

// column is one column of Table I in JSON.
type column struct {
	Scheme      string           `json:"scheme"`
	Locality    string           `json:"locality"`
	Network     string           `json:"network"`
	Composition []string         `json:"composition"`
	Optional    []string         `json:"optional"` // the last ones of Composition, added by flags
	Options     map[string]int64 `json:"options"`
	Missing     []string         `json:"missing"`    // micro-protocols that the catalog lacks
	Protection  []string         `json:"protection"` // with --protect: composition of the composite below
}

func (a *app) stackCommand() *cobra.Command {
	var scheme, locality, network, live, tokenFile, of string
	var protect bool
	var optional rendezvous.Spec
	c := &cobra.Command{
		Use:   "stack",
		Short: "Print the composition for a context, or all of Table I",
		Long: `stack prints the micro-protocols of a session: for one context if --scheme,
--locality and --network are given, otherwise for all that match (Table I of the
2013 paper). Micro-protocols that this program lacks are marked. --protect adds the
composite that protects frames between hosts, which is not part of the table.
--congestion and --rows add optional rows below those of the table.

With --live it prints the current compositions of a running solve (obstacle solve
--status HOST:PORT), with --of those in the JSON output of a solve.`,
		Example: "  obstacle stack\n  obstacle stack --scheme sync --locality intra --network ether",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if live != "" || of != "" {
				if scheme != "" || locality != "" || network != "" || live != "" && of != "" {
					return usage("--live and --of show the sessions of a run: give one of them, without --scheme, " +
						"--locality and --network")
				}
				run, err := a.liveRun(c.Context(), live, tokenFile, of)
				if err != nil {
					return err
				}
				return a.print(run, run.Text)
			}
			rows, err := a.catalog.Optional(optional.Congestion, optional.Rows)
			if err != nil {
				return badInput(err)
			}
			columns, err := a.columns(scheme, locality, network, p2psap.TablePolicy{Optional: rows})
			if err != nil {
				return err
			}
			for i := range columns {
				if protect {
					columns[i].Protection = p2psap.ProtectionStack()
				}
			}
			return a.print(struct {
				Columns []column `json:"columns"`
			}{columns}, func(w io.Writer) {
				if len(columns) == 1 {
					a.writeColumn(w, columns[0])
				} else {
					a.writeTable(w, columns)
				}
				if network == rail.Stream {
					fmt.Fprintln(w, "stream is kernel TCP, which is not in the paper's table: "+
						"it uses the columns of ib, and asynchronous sessions use ether")
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&tokenFile, "http-token-file", "", "with --live: file with the token of the run, readable by its owner only")
	f.StringVar(&live, "live", "", "HOST:PORT of a running solve --status: show its current compositions")
	f.StringVar(&of, "of", "", "file with the JSON of a solve (- for standard input): show its compositions")
	f.StringVar(&scheme, "scheme", "", "sync or async")
	f.StringVar(&locality, "locality", "", "intra (peers in one cluster) or inter (in different ones)")
	rowFlags(f, &optional, a.catalog)
	f.BoolVar(&protect, "protect", false, "show the composite that protects frames between hosts")
	f.StringVar(&network, "network", "", "ether, ib, shm, memory or stream (the last three use the columns of ib)")
	return c
}

func (a *app) columns(scheme, locality, network string, policy p2psap.Policy) ([]column, error) {
	schemes, err := oneOrAll("scheme", scheme, []string{"sync", "async"})
	if err != nil {
		return nil, err
	}
	localities, err := oneOrAll("locality", locality, []string{"intra", "inter"})
	if err != nil {
		return nil, err
	}
	networks := []string{"ib", "ether"}
	if network != "" {
		if networks, err = oneOrAll("network", network, []string{"ether", "ib", "shm", "memory", "stream"}); err != nil {
			return nil, err
		}
	}
	if network == rail.Stream {
		if scheme == "async" {
			return nil, usage("--network %s carries no asynchronous sessions: they use ether", network)
		}
		schemes = []string{"sync"}
	}
	var out []column
	for _, s := range schemes {
		for _, l := range localities {
			for _, n := range networks {
				col, err := a.column(s, l, n, policy)
				if err != nil {
					return nil, failed(err)
				}
				out = append(out, col)
			}
		}
	}
	return out, nil
}

// oneOrAll returns the value of a flag, or all known values if it is empty.
func oneOrAll(flag, value string, known []string) ([]string, error) {
	switch {
	case value == "":
		return known, nil
	case slices.Contains(known, value):
		return []string{value}, nil
	}
	return nil, badInput(catalog.Unknown(flag, value, known))
}

func (a *app) column(scheme, locality, network string, policy p2psap.Policy) (column, error) {
	c := p2psap.Conditions{Mode: microproto.ModeSynchronous, Locality: p2psap.SameCluster, Network: p2psap.Ethernet}
	if scheme == "async" {
		c.Mode = microproto.ModeAsynchronous
	}
	if locality == "inter" {
		c.Locality = p2psap.OtherCluster
	}
	for _, n := range []p2psap.Network{p2psap.InfiniBand, p2psap.SharedMemory, p2psap.Memory, p2psap.Stream} {
		if n.String() == network {
			c.Network = n
		}
	}
	composed, err := policy.Compose(c)
	col := column{
		Scheme: scheme, Locality: locality, Network: network,
		Composition: composed.Protocols, Options: composed.Options,
		Optional: append([]string{}, composed.Optional...), Missing: []string{}, Protection: []string{},
	}
	for _, name := range composed.Protocols {
		if !a.catalog.Protocols.Has(name) {
			col.Missing = append(col.Missing, name)
		}
	}
	return col, err
}

func (a *app) writeColumn(w io.Writer, c column) {
	fmt.Fprintf(w, "%s %s %s, from top to bottom:\n", c.Scheme, c.Locality, c.Network)
	for _, name := range c.Composition {
		mark := ""
		switch {
		case slices.Contains(c.Missing, name):
			mark = "  (missing)"
		case slices.Contains(c.Optional, name):
			mark = "  (" + a.catalog.Flag(name) + ")"
		}
		fmt.Fprintf(w, "  %s%s\n", name, mark)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Options)) {
		fmt.Fprintf(w, "  %s = %d\n", k, c.Options[k])
	}
	writeProtection(w, c)
}

func writeProtection(w io.Writer, c column) {
	if len(c.Protection) == 0 {
		return
	}
	fmt.Fprintln(w, "below it, between CTP* and the link, another composite protects frames (--protect):")
	for _, name := range c.Protection {
		fmt.Fprintf(w, "  %s\n", name)
	}
}

func (a *app) writeTable(w io.Writer, columns []column) {
	var headings []string
	rows, optional := p2psap.TableRows(), []string{"optional rows:"}
	for _, c := range columns {
		headings = append(headings, strings.Join([]string{c.Scheme, c.Locality, c.Network}, " "))
		for _, row := range c.Optional {
			if !slices.Contains(optional, row) {
				optional = append(optional, row)
			}
		}
	}
	if len(optional) > 1 {
		rows = append(rows, optional...)
	}
	t := report.Tabs(w)
	report.Marks(t, headings, rows, func(i int, row string) string {
		switch c := &columns[i]; {
		case slices.Contains(c.Missing, row):
			return "o"
		case slices.Contains(c.Composition, row):
			return "x"
		}
		return ""
	})
	t.Flush()
	if slices.ContainsFunc(columns, func(c column) bool { return len(c.Missing) > 0 }) {
		fmt.Fprintln(w,
			"x: available; o: part of the column, missing in this program: sessions that need it are refused")
	}
	if len(columns) > 0 {
		writeProtection(w, columns[0])
	}
}
