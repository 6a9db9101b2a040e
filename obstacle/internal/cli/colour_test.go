package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColoured(t *testing.T) {
	for _, c := range []struct {
		word, noColour, term  string
		onTerminal, elsewhere bool
	}{
		{"auto", "", "xterm", true, false},
		{"auto", "1", "xterm", false, false},
		{"auto", "0", "xterm", false, false}, // any value that is not empty
		{"auto", "", "dumb", false, false},
		{"auto", "", "", true, false},
		{"always", "1", "dumb", true, true},
		{"never", "", "xterm", false, false},
	} {
		require.Equal(t, c.onTerminal, coloured(c.word, true, c.noColour, c.term), c)
		require.Equal(t, c.elsewhere, coloured(c.word, false, c.noColour, c.term), c)
	}
}

// --color always colours the prefix of an error; otherwise output that is no terminal has no escapes.
func TestColourOfErrors(t *testing.T) {
	_, _, errs := call("check", "nothing.yaml", "--color", "always")
	require.Contains(t, errs, "\x1b[31mobstacle:\x1b[0m nothing.yaml")
	for _, args := range [][]string{{"check", "nothing.yaml"}, {"check", "nothing.yaml", "--color", "never"}, {"doctor"}} {
		_, out, errs := call(args...)
		require.NotContains(t, out+errs, "\x1b")
	}
	code, _, errs := call("problems", "--color", "alwys")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `--color "alwys" (did you mean "always"?): want auto, always or never`)
}
