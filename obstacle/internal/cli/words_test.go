package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands that are shown quote the names in them for a shell, and a name that begins with a dash is no flag.
func TestCommandsShownAreQuoted(t *testing.T) {
	t.Chdir(t.TempDir())
	open := func(name string) { require.NoError(t, os.WriteFile(name, []byte("0123456789abcdef\n"), 0o644)) }
	open("it's")
	open("-open")
	_, text, _ := call("init", "my.yaml")
	require.Contains(t, text, "obstacle explain my.yaml")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"obstacle init 'a b.yaml' writes", []string{"solve", "a b.yaml"}},
		{`obstacle init 'it'\''s.yaml' writes`, []string{"check", "it's.yaml"}},
		{"obstacle init ./-a.yaml writes", []string{"explain", "--", "-a.yaml"}},
		{`obstacle init $'a\u000ab.yaml' writes`, []string{"explain", "a\nb.yaml"}},
		{"obstacle solve ./-b.yaml", []string{"init", "--", "-b.yaml"}},
		{"obstacle explain '$b.yaml'", []string{"init", "$b.yaml"}},
		{"obstacle solve 'c d.yaml'", []string{"init", "c d.yaml"}},
		{"obstacle secret './-s t' makes one", []string{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "-s t"}},
		{"--format json > 'a b' makes one", []string{"stack", "--of", "a b"}},
		{"--trace 'a b' makes one", []string{"trace", "stats", "a b"}},
		{`chmod 600 'it'\''s'`, []string{"stack", "--live", "127.0.0.1:1", "--http-token-file", "it's"}},
		{"chmod 600 ./-open", []string{"stack", "--live", "127.0.0.1:1", "--http-token-file=-open"}},
		{"obstacle resume 'c;d'", []string{"solve", "ball2d", "--n", "31", "--in-process", "--max-sweeps", "2", "--method", "sor",
			"--checkpoint", "c;d"}},
		{"obstacle resume ./-c", []string{"solve", "ball2d", "--n", "31", "--in-process", "--max-sweeps", "2", "--method", "sor",
			"--checkpoint=-c"}},
	} {
		_, out, errs := call(c.args...)
		require.Contains(t, out+errs, c.want, "%q", c.args)
	}
	require.NoError(t, os.WriteFile("token", []byte("0123456789abcdef\n"), 0o600))
	require.NoError(t, os.Rename("token", "to ken"))
	_, out, errs := call("solve", "ball2d", "--n", "7", "--in-process", "--status", "0", "--http-token-file", "to ken")
	require.Contains(t, out+errs, "--http-token-file 'to ken'")
}

// Commands for other hosts name addresses that these can dial.
func TestCommandsForOtherHostsNameItsAddresses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("long enough a secret\n"), 0o600))
	for _, all := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		_, _, errs := call("solve", "ball2d", "--n", "7", "--peers", "1", "--rendezvous", all, "--secret-file", secret,
			"--join-timeout", "1ms")
		require.Regexp(t, `waiting for 1 peers at (\S+): obstacle peer --rendezvous \S`, errs)
		require.NotRegexp(t, `0\.0\.0\.0|\[::\]`, firstLine(errs, "waiting for"))
		_, out, errs := call("solve", "ball2d", "--n", "7", "--in-process", "--status", all)
		require.NotRegexp(t, `0\.0\.0\.0|\[::\]`, firstLine(out+errs, "status at"))
	}
}

// firstLine returns the first line that begins with a text.
func firstLine(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	return begin + ": no such line: 0.0.0.0"
}

// obstacle peer takes several addresses of one launcher, as the launcher prints them.
func TestPeerTakesSeveralAddresses(t *testing.T) {
	for all, want := range map[string]string{
		"127.0.0.1:1,nohost":                  `--rendezvous "nohost": want HOST:PORT`,
		"127.0.0.1:1,":                        `--rendezvous "": want HOST:PORT`,
		strings.Repeat("127.0.0.1:1,", 9):     `--rendezvous "": want HOST:PORT`,
		strings.Repeat(",127.0.0.1:1", 9)[1:]: "--rendezvous: 9 addresses; want 8 at most",
	} {
		code, _, errs := call("peer", "--rendezvous", all, "--secret-file", "none")
		require.Equal(t, ExitUsage, code, errs)
		require.Contains(t, errs, want)
	}
}
