package microproto_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

func TestCatalog(t *testing.T) {
	c := microproto.NewCatalog()
	make1 := func(name string) microproto.Constructor {
		return func(o microproto.Options) (microproto.MicroProtocol, error) {
			if o["bad"] != 0 {
				return nil, fmt.Errorf("bad is %d", o["bad"])
			}
			return of(name, func(*binder) {}), nil
		}
	}
	require.NoError(t, c.Add("b", make1("b")))
	require.NoError(t, c.Add("a", make1("a")))
	require.ErrorContains(t, c.Add("a", make1("a")), "already")
	require.Error(t, c.Add("", make1("")))
	require.NoError(t, c.Add("liar", make1("other")))
	require.Equal(t, []string{"a", "b", "liar"}, c.Names())
	require.True(t, c.Has("a"))
	require.False(t, c.Has("z"))
	mps, err := c.Build([]string{"b", "a"}, nil)
	require.NoError(t, err)
	require.Equal(t, "b", mps[0].Name())
	_, err = c.Build([]string{"z"}, nil)
	require.ErrorContains(t, err, `no micro-protocol "z" in the catalog (it lists ["a" "b" "liar"])`)
	_, err = c.Build([]string{"a"}, microproto.Options{"bad": 1})
	require.ErrorContains(t, err, "make a: bad is 1")
	_, err = c.Build([]string{"liar"}, nil)
	require.ErrorContains(t, err, `makes a micro-protocol named "other"`)
}

func TestRows(t *testing.T) {
	c := microproto.NewCatalog()
	parity := microproto.Row{
		Protocol: "Parity", Help: "repairs one loss in four", Columns: microproto.Columns(),
		New: func(microproto.Options) (microproto.MicroProtocol, error) { return of("Parity", func(*binder) {}), nil },
	}
	require.NoError(t, c.AddRow(parity))
	require.True(t, c.Has("Parity"))
	require.ErrorContains(t, c.AddRow(parity), `lists row "Parity" of group "" already`)
	parity.Label = "parity"
	require.ErrorContains(t, c.AddRow(parity), `"Parity" is in the catalog already`)
	parity.New, parity.Group = nil, "repair"
	require.NoError(t, c.AddRow(parity), "a second label for it")
	require.ErrorContains(t, c.AddRow(microproto.Row{Protocol: "None"}), `row "None" needs a constructor`)
	require.ErrorContains(t, c.AddRow(microproto.Row{Protocol: "Parity", Label: "a,b"}), "must not contain commas")

	_, err := c.Row("repair", "Parity")
	require.ErrorContains(t, err, `no row "Parity" in the catalog (it lists ["parity"])`)
	r, err := c.Row("repair", "parity")
	require.NoError(t, err)
	require.Equal(t, "repairs one loss in four", r.Help)
	require.Equal(t, []string{"Parity"}, c.Labels(""))
	require.Len(t, c.Rows("repair"), 1)
	require.Empty(t, c.Rows("nothing"))
}

func TestColumns(t *testing.T) {
	var names []string
	for _, c := range microproto.Columns() {
		names = append(names, c.String())
	}
	require.Equal(t, []string{
		"sync intra ib", "sync intra ether", "sync inter ib", "sync inter ether",
		"async intra ib", "async intra ether", "async inter ib", "async inter ether",
	}, names)
}
