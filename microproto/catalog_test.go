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
