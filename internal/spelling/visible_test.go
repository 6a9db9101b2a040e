package spelling

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	for name, want := range map[string]string{
		"µ × 10⁻⁶": "µ × 10⁻⁶", "a\nb": `a\u000ab`, "a\tb\xffc": `a\u0009b\xffc`, "\x1b[2J": `\u001b[2J`, "\ufffd": "\ufffd",
		"\u2028": `\u2028`, "\xe2\x80": `\xe2\x80`,
	} {
		require.Equal(t, want, Visible(name))
	}
	require.Equal(t, "a\n\tb\\xff\\u0007", string(VisibleText([]byte("a\n\tb\xff\x07"), nil)))
}

// A visible name is one line that a terminal prints as it is.
func TestVisibleIsALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shown := Visible(string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\n\t\xff\xc2\x9b")))).Draw(t, "name")))
		require.True(t, utf8.ValidString(shown))
		require.False(t, strings.ContainsAny(shown, "\n\t") || strings.ContainsFunc(shown, Obeyed))
		require.Equal(t, shown, Visible(shown))
	})
}

// A shell reads a word as it was.
func TestWord(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	for _, word := range []string{"my.yaml", "", "it's here", `a\nb`, "a\nb", "a\xffb\tc'd\\e", "$HOME", "\x1b]0;t\x07"} {
		out, err := exec.Command(bash, "-c", "export LC_ALL=C.UTF-8; printf %s "+Word(word)).Output()
		require.NoError(t, err)
		require.Equal(t, word, string(out))
		require.NotContains(t, Word(word), "\n")
	}
	for name, want := range map[string]string{"-x y": "'./-x y'", "-": "-", "x": "x", "-\n": `$'./-\u000a'`} {
		require.Equal(t, want, File(name))
	}
}
