package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

func TestScheme(t *testing.T) {
	for _, word := range []string{"sync", "async", "delay:0", "delay:3", "delay:1048576"} {
		s, err := New().Scheme(word, nil)
		require.NoError(t, err)
		require.Equal(t, word, s.Name(), "what is sent to a peer is read there again")
		require.Equal(t, word != "sync", s.Asynchronous())
	}
	for word, why := range map[string]string{
		"asinc": `did you mean "async"`, "": "want sync",
		"delay:": "whole number", "delay:-1": "whole number", "delay:1.5": "whole number", "delay:9999999": "whole number",
	} {
		_, err := New().Scheme(word, nil)
		require.ErrorContains(t, err, why, word)
	}
}

func TestHybridOfLabels(t *testing.T) {
	s, err := New().Scheme("hybrid", []string{"a", "b", "a", "", ""})
	require.NoError(t, err)
	require.Equal(t, "hybrid", s.Name())
	together := func(a, b iterate.Rank) bool { return !s.Between(a, b).Asynchronous() }
	require.True(t, together(0, 2))
	require.False(t, together(0, 1))
	require.False(t, together(3, 4), "without a label each is alone")
	s, err = New().Scheme("hybrid", []string{"a", "a"})
	require.NoError(t, err)
	require.True(t, s.Lockstep())
}
