package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver"
)

func TestScheme(t *testing.T) {
	for _, word := range []string{"sync", "async", "delay:0", "delay:3", "delay:1048576"} {
		s, err := Scheme(word)
		require.NoError(t, err)
		require.Equal(t, word, s.Name(), "what is sent to a peer is read there again")
		require.Equal(t, word != "sync", s.Asynchronous())
	}
	for word, why := range map[string]string{
		"hybrid": "not built in this release", "asinc": `did you mean "async"`, "": "want sync",
		"delay:": "whole number", "delay:-1": "whole number", "delay:1.5": "whole number", "delay:9999999": "whole number",
	} {
		_, err := Scheme(word)
		require.ErrorContains(t, err, why, word)
	}
}

func TestOrder(t *testing.T) {
	for _, o := range []solver.Order{solver.Jacobi, solver.InTurn} {
		got, err := Order(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	_, err := Order("random")
	require.ErrorContains(t, err, "want jacobi or in-turn")
}
