package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type named struct {
	problem.Method
	name string
}

func (n named) Name() string { return n.name }

// Names that would break a line, or that cannot be printed, are refused.
func TestNamesAreWords(t *testing.T) {
	for _, name := range []string{"a\nb", "a b", "a,b", "a\tb", "a\xffb", "\x1b[2J", "\u202eb", ""} {
		c := New()
		require.Error(t, c.Methods.Add(named{name: name}), "%q", name)
		require.Error(t, c.Schemes.Add(name, "", nil), "%q", name)
		require.Error(t, c.Problems.Add(problems.Builtin{Name: name, Dimension: 2}, func(*problem.Problem, []float64) error { return nil }), "%q", name)
	}
	require.NoError(t, New().Methods.Add(named{name: "gedämpft-2"}))
}
