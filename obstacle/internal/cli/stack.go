package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// column is one column of Table I as JSON.
type column struct {
	Scheme      string           `json:"scheme"`
	Locality    string           `json:"locality"`
	Network     string           `json:"network"`
	Composition []string         `json:"composition"`
	Optional    []string         `json:"optional"` // of those, the last ones, which options added
	Options     map[string]int64 `json:"options"`
	Missing     []string         `json:"missing"`    // micro-protocols that are not built
	Protection  []string         `json:"protection"` // with --protect: the composite below it
}

func (a *app) stackCommand() *cobra.Command {
	var scheme, locality, network, live, of string
	var protect bool
	var add rowFlags
	c := &cobra.Command{
		Use:   "stack",
		Short: "Print the composition for a context, or all of Table I",
		Long: `stack prints of which micro-protocols a channel is composed: for one context
when all three flags are given, otherwise for every one that matches (Table I of
the 2013 paper). What this program has not built is marked. --protect adds the
composite that seals frames between hosts; it stands below, and is no part of the
table. --congestion and --negative-ack add the rows that they stand for, apart from
the table's.

With --live it asks a running solve (obstacle solve --status HOST:PORT) for the
compositions that its sessions have now, and with --of it reads them from what a
solve has printed with --format json.`,
		Example: "  obstacle stack\n  obstacle stack --scheme sync --locality intra --network ether",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if live != "" || of != "" {
				if scheme != "" || locality != "" || network != "" || live != "" && of != "" {
					return usage("--live and --of show the sessions of a run: neither goes with the other, nor with --scheme, --locality, --network")
				}
				run, err := a.liveRun(c.Context(), live, of)
				if err != nil {
					return err
				}
				return a.print(run, run.Text)
			}
			rows, err := add.optional(a.catalog)
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
					a.oneColumn(w, columns[0])
				} else {
					a.tableI(w, columns)
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&live, "live", "", "HOST:PORT of a running solve --status: the compositions of its sessions now")
	f.StringVar(&of, "of", "", "file with the JSON of a solve (- for standard input): the compositions of its sessions")
	f.StringVar(&scheme, "scheme", "", "sync or async")
	f.StringVar(&locality, "locality", "", "intra or inter: peers in one cluster, or in different ones")
	add.add(f, a.catalog)
	f.BoolVar(&protect, "protect", false, "show the composite that seals frames between hosts, too")
	f.StringVar(&network, "network", "", "ether, ib, shm or memory (the last two take the InfiniBand columns)")
	return c
}

// columns lists the contexts that match the flags.
func (a *app) columns(scheme, locality, network string, policy p2psap.Policy) ([]column, error) {
	schemes, err := choose("scheme", scheme, []string{"sync", "async"})
	if err != nil {
		return nil, err
	}
	localities, err := choose("locality", locality, []string{"intra", "inter"})
	if err != nil {
		return nil, err
	}
	networks := []string{"ib", "ether"}
	if network != "" {
		if networks, err = choose("network", network, []string{"ether", "ib", "shm", "memory"}); err != nil {
			return nil, err
		}
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

// choose is the value of a flag if it is known, or all values when it is empty.
func choose(flag, value string, known []string) ([]string, error) {
	switch {
	case value == "":
		return known, nil
	case slices.Contains(known, value):
		return []string{value}, nil
	}
	return nil, usage("--%s %q: want one of %s", flag, value, strings.Join(known, ", "))
}

func (a *app) column(scheme, locality, network string, policy p2psap.Policy) (column, error) {
	c := p2psap.Conditions{Mode: microproto.ModeSynchronous, Locality: p2psap.SameCluster, Network: p2psap.Ethernet}
	if scheme == "async" {
		c.Mode = microproto.ModeAsynchronous
	}
	if locality == "inter" {
		c.Locality = p2psap.OtherCluster
	}
	for _, n := range []p2psap.Network{p2psap.InfiniBand, p2psap.SharedMemory, p2psap.Memory} {
		if n.String() == network {
			c.Network = n
		}
	}
	composed, err := policy.Compose(c)
	col := column{
		Scheme: scheme, Locality: locality, Network: network, Composition: composed.Protocols, Options: composed.Options,
		Optional: append([]string{}, composed.Optional...), Missing: []string{}, Protection: []string{},
	}
	for _, name := range composed.Protocols {
		if !a.catalog.Protocols.Has(name) {
			col.Missing = append(col.Missing, name)
		}
	}
	return col, err
}

func (a *app) oneColumn(w io.Writer, c column) {
	fmt.Fprintf(w, "%s %s %s, from top to bottom:\n", c.Scheme, c.Locality, c.Network)
	for _, name := range c.Composition {
		mark := ""
		switch {
		case slices.Contains(c.Missing, name):
			mark = "  (not built)"
		case slices.Contains(c.Optional, name):
			mark = "  (" + a.catalog.Flag(name) + ")"
		}
		fmt.Fprintf(w, "  %s%s\n", name, mark)
	}
	for _, k := range sortedKeys(c.Options) {
		fmt.Fprintf(w, "  %s = %d\n", k, c.Options[k])
	}
	below(w, c)
}

// below prints the composite that seals the frames of a column.
func below(w io.Writer, c column) {
	if len(c.Protection) == 0 {
		return
	}
	fmt.Fprintln(w, "below it, between CTP* and the link, a composite of its own seals frames (--protect):")
	for _, name := range c.Protection {
		fmt.Fprintf(w, "  %s\n", name)
	}
}

func (a *app) tableI(w io.Writer, columns []column) {
	table(w, func(w io.Writer) {
		fmt.Fprint(w, "micro-protocol")
		for _, c := range columns {
			fmt.Fprintf(w, "\t%s %s %s", c.Scheme, c.Locality, c.Network)
		}
		fmt.Fprintln(w)
		for _, row := range p2psap.TableRows() {
			rowOf(w, columns, row)
		}
		for i, row := range optionalRows(columns) {
			if i == 0 {
				fmt.Fprintln(w, "behind the table:"+strings.Repeat("\t", len(columns)))
			}
			rowOf(w, columns, row)
		}
	})
	if slices.ContainsFunc(columns, func(c column) bool { return len(c.Missing) > 0 }) {
		fmt.Fprintln(w, "x: built; o: part of the column, not built in this release: a session that needs it is refused")
	}
	if len(columns) > 0 {
		below(w, columns[0])
	}
}

// rowOf prints in which columns a micro-protocol is.
func rowOf(w io.Writer, columns []column, row string) {
	fmt.Fprint(w, row)
	for _, c := range columns {
		mark := ""
		switch {
		case slices.Contains(c.Missing, row):
			mark = "o"
		case slices.Contains(c.Composition, row):
			mark = "x"
		}
		fmt.Fprintf(w, "\t%s", mark)
	}
	fmt.Fprintln(w)
}

// optionalRows lists the rows that options added to some column, each once.
func optionalRows(columns []column) (out []string) {
	for _, c := range columns {
		for _, row := range c.Optional {
			if !slices.Contains(out, row) {
				out = append(out, row)
			}
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
