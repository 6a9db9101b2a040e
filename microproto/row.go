package microproto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Column is a column of Table I of Tembo, Nguyen and El Baz (PDP 2013): the conditions by
// which the micro-protocols of a channel are chosen.
type Column struct {
	Mode Mode
	// Intra: both ends are in one cluster.
	Intra bool
	// InfiniBand stands for every network that does congestion control, flow control and
	// recovery itself, shared memory and in-process memory included. The others are Ethernet.
	InfiniBand bool
}

// Columns returns the eight columns in the order of the table.
func Columns() []Column {
	var out []Column
	for _, m := range []Mode{ModeSynchronous, ModeAsynchronous} {
		for _, intra := range []bool{true, false} {
			for _, ib := range []bool{true, false} {
				out = append(out, Column{m, intra, ib})
			}
		}
	}
	return out
}

// String returns the heading of the column, such as "sync intra ether".
func (c Column) String() string {
	where, network := "inter", "ether"
	if c.Intra {
		where = "intra"
	}
	if c.InfiniBand {
		network = "ib"
	}
	return fmt.Sprintf("%v %s %s", c.Mode, where, network)
}

// Row describes an optional row of Table I: a micro-protocol that a user adds by name. It
// is composed below the rows of the table, so it can look up what all of them declare. No
// optional row removes a row of the table.
type Row struct {
	Protocol string      // name of the micro-protocol
	New      Constructor // nil if the catalog lists the micro-protocol already
	Help     string      // one line for the help of a flag
	Columns  []Column    // columns in which the row is composed
	Options  Options     // settings of those columns, which a user may change by --rows NAME:key=value; may be nil
	// Group names a choice of which a user takes one row, such as the congestion
	// controllers. Rows of group "" are independent of each other.
	Group string
	Label string // value of the flag that selects the row, a word; "": Protocol
}

// AddRow lists an optional row, and its micro-protocol if r.New is not nil. Two rows of a
// group with one label are an error.
func (c *Catalog) AddRow(r Row) error {
	r.Label = cmp.Or(r.Label, r.Protocol)
	if strings.ContainsAny(r.Label, ",: \t\n") {
		return fmt.Errorf("microproto: row %q: a label must not contain commas, colons or spaces", r.Label)
	}
	if _, err := c.Row(r.Group, r.Label); err == nil {
		return fmt.Errorf("microproto: the catalog lists row %q of group %q already", r.Label, r.Group)
	}
	if r.New != nil {
		if err := c.Add(r.Protocol, r.New); err != nil {
			return err
		}
	}
	if !c.Has(r.Protocol) {
		return fmt.Errorf("microproto: row %q needs a constructor: the catalog does not list %q", r.Label, r.Protocol)
	}
	c.rows = append(c.rows, r)
	return nil
}

// Rows returns the rows of a group in the order of AddRow.
func (c *Catalog) Rows(group string) []Row {
	return slices.DeleteFunc(slices.Clone(c.rows), func(r Row) bool { return r.Group != group })
}

// Labels returns the labels of the rows of a group in the order of AddRow.
func (c *Catalog) Labels(group string) []string {
	var out []string
	for _, r := range c.Rows(group) {
		out = append(out, r.Label)
	}
	return out
}

// Row returns the row of a group with a label. The error for an unknown label lists the
// known ones.
func (c *Catalog) Row(group, label string) (Row, error) {
	i := slices.IndexFunc(c.rows, func(r Row) bool { return r.Group == group && r.Label == label })
	if i < 0 {
		return Row{}, fmt.Errorf("microproto: no row %q in the catalog (it lists %q)", label, c.Labels(group))
	}
	return c.rows[i], nil
}
