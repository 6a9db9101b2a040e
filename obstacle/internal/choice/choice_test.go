package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

func TestScheme(t *testing.T) {
	for _, word := range []string{"sync", "async", "delay:0", "delay:3", "delay:1048576"} {
		s, err := Scheme(word, nil)
		require.NoError(t, err)
		require.Equal(t, word, s.Name(), "what is sent to a peer is read there again")
		require.Equal(t, word != "sync", s.Asynchronous())
	}
	for word, why := range map[string]string{
		"asinc": `did you mean "async"`, "": "want sync",
		"delay:": "whole number", "delay:-1": "whole number", "delay:1.5": "whole number", "delay:9999999": "whole number",
	} {
		_, err := Scheme(word, nil)
		require.ErrorContains(t, err, why, word)
	}
}

func TestHybridOfLabels(t *testing.T) {
	s, err := Scheme("hybrid", []string{"a", "b", "a", "", ""})
	require.NoError(t, err)
	require.Equal(t, "hybrid", s.Name())
	together := func(a, b iterate.Rank) bool { return !s.Between(a, b).Asynchronous() }
	require.True(t, together(0, 2))
	require.False(t, together(0, 1))
	require.False(t, together(3, 4), "without a label each is alone")
	s, err = Scheme("hybrid", []string{"a", "a"})
	require.NoError(t, err)
	require.True(t, s.Lockstep())
}

func TestOrder(t *testing.T) {
	for _, o := range []problem.Order{problem.Jacobi, problem.InTurn} {
		got, err := Order(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	_, err := Order("random")
	require.ErrorContains(t, err, "want jacobi or in-turn")
}
