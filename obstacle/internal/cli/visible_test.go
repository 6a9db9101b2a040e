package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nµ × 10⁻⁶ ≤ é": "a\tb\nµ × 10⁻⁶ ≤ é", "\x1b]0;title\x07": `\u001b]0;title\u0007`, "\x1b[31mred\x1b[0m": `\u001b[31mred\u001b[0m`,
		"a\rb\x7f\u009b2J": `a\u000db\u007f\u009b2J`, "\u202egnp.exe": `\u202egnp.exe`, "\U000e0041": `\udb40\udc41`, "\xff": `\xff`,
	} {
		require.Equal(t, want, string(visible([]byte(text), false)))
	}
	require.Equal(t, "\x1b[31mred\x1b[0m\\u001b[2J\\u001b[8m", string(visible([]byte("\x1b[31mred\x1b[0m\x1b[2J\x1b[8m"), true)))
}

// What is printed holds nothing that a terminal obeys, and JSON has the same value.
func TestVisibleJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\x1b\x07\u009b\u202e\r\"\\")))).Draw(t, "name")
		text, err := json.Marshal(name)
		require.NoError(t, err)
		shown := visible(text, false)
		require.False(t, bytes.ContainsFunc(shown, spelling.Obeyed))
		var back string
		require.NoError(t, json.Unmarshal(shown, &back))
		require.Equal(t, strings.ToValidUTF8(name, "\ufffd"), back)
	})
}

// Names that a user was given reach neither stdout nor stderr as they are, in answers, errors and logs.
func TestNamesAreShown(t *testing.T) {
	t.Chdir(t.TempDir())
	const evil = "a\x1b]0;owned\x07\u009b\u202e"
	require.NoError(t, os.WriteFile(evil+".yaml", []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: 0.3-2*(x-0.5)^2\n"), 0o600))
	require.NoError(t, os.WriteFile("array.yaml", []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: {npy: \"a\\e]0;b\\a\"}\n"), 0o600))
	require.NoError(t, os.WriteFile("cluster.yaml", []byte("machines:\n  \"a\\e]0;b\\a\": {cores: 0}\n"), 0o600))
	require.NoError(t, os.WriteFile("hosts", []byte("a\x1b]0;b\x07 many\n"), 0o600))
	for _, args := range [][]string{
		{"solve", evil + ".yaml", "--n", "9", "--in-process", "--out", evil + ".npy", "--log-level", "debug"},
		{"solve", evil + ".yaml", "--n", "9", "--in-process", "--format", "json", "--log-format", "json", "--log-level", "debug"},
		{"check", evil + ".yaml"}, {"explain", evil + ".yaml", "--n", "9"}, {"solve", evil}, {"check", "array.yaml"},
		{"clusters", "cluster.yaml"}, {"solve", "membrane", "--hosts", "hosts"}, {"solve", "membrane", "--topology", evil},
		{"solve", "membrane", "--scheme", evil}, {"trace", "stats", evil}, {"resume", evil}, {evil},
		{"solve", "membrane", "--" + evil}, {"compare", evil + ".yaml", "--n", "9", "--in-process", "--rounds", "1", "--color", "always"},
	} {
		var out, errs bytes.Buffer
		Main(t.Context(), args, catalog.New(), strings.NewReader(""), &out, &errs)
		for _, text := range []string{out.String(), errs.String()} {
			text = strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(text)
			require.False(t, strings.ContainsFunc(text, spelling.Obeyed), "%q: %q", args, text)
		}
		require.NotEmpty(t, out.String()+errs.String())
	}
}

// A name with a line feed or a byte that is no UTF-8 is shown in one line, in answers, tables, errors and logs.
func TestNamesAreLines(t *testing.T) {
	t.Chdir(t.TempDir())
	const odd = "o\nd\xff\td"
	text := []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: 0.3-2*(x-0.5)^2\n")
	require.NoError(t, os.WriteFile(odd+".yaml", text, 0o600))
	require.NoError(t, os.WriteFile("array.yaml", []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: {npy: \"o\\nd.npy\"}\n"), 0o600))
	require.NoError(t, os.WriteFile(odd+"m.yaml", []byte("machines:\n  \"o\\nd\": {cores: 0}\n"), 0o600))
	for _, args := range [][]string{
		{"solve", odd + ".yaml", "--n", "9", "--in-process", "--out", odd + ".npy", "--checkpoint", odd, "--log-level", "debug"},
		{"solve", odd + ".yaml", "--n", "9", "--in-process", "--max-sweeps", "1", "--checkpoint", odd + "c", "--method", "sor"},
		{"resume", odd + "c", "--in-process"}, {"resume", odd + "x"}, {"check", odd + ".yaml"}, {"check", odd + "y"}, {"check", "array.yaml"},
		{"explain", odd + ".yaml", "--n", "9", "--checkpoint", odd}, {"init", odd + "i.yaml"}, {"clusters", odd + "m.yaml"},
		{"solve", "membrane", "--method", odd}, {"solve", "membrane", "--hosts", odd}, {"solve", "membrane", "--in-process", "--out", odd + "z/u.npy"},
		{"compare", odd + ".yaml", "--n", "9", "--in-process", "--rounds", "1", "--latex", odd + ".tex"},
		{"simulate", odd + ".yaml", "--n", "9", "--machines", "2", "--model", "graphene-eth", "--max-sweeps", "3"},
		{"simulate", "membrane", "--model", odd}, {"convergence", odd + ".yaml"}, {"trace", "stats", odd},
		{"solve", "membrane", "--in-process", "--trace", odd + "z/t"}, {"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", odd},
	} {
		var out, errs bytes.Buffer
		Main(t.Context(), args, catalog.New(), strings.NewReader(""), &out, &errs)
		all := out.String() + errs.String()
		require.NotRegexp(t, `o\n *d[^o]|d\xff|d\t+d`, all, "%q", args)
		require.NotContains(t, all, "\ufffd", "%q", args)
		require.Contains(t, all, "o\\", "%q", args)
	}
}
