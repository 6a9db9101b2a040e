package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every command has a page with all of its flags, in ASCII, and the same date gives the same bytes.
func TestManualPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000") // 21 September 2026
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b", "c")}
	for _, dir := range dirs {
		code, out, errs := call("man", "--dir", dir)
		require.Zero(t, code, errs)
		require.Contains(t, out, "manual pages in "+dir)
	}
	for _, c := range commands(t) {
		if !c.IsAvailableCommand() && c.HasParent() {
			continue
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dirs[0], name+".1"))
		require.NoError(t, err)
		again, err := os.ReadFile(filepath.Join(dirs[1], name+".1"))
		require.NoError(t, err)
		require.Equal(t, page, again, name)
		require.Contains(t, string(page), `"Sep 2026"`, name)
		require.NotContains(t, string(page), "Auto generated", name)
		require.Equal(t, -1, bytes.IndexFunc(page, func(r rune) bool { return r > 126 }), name)
		if name == "obstacle-solve" {
			require.Contains(t, string(page), `--checkpoint-every`)
			require.Contains(t, string(page), `PX,PY,PZ`)
		}
	}
}

// groff formats every page without a warning.
func TestManualPagesAreRoff(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	dir := t.TempDir()
	code, _, errs := call("man", "--dir", dir)
	require.Zero(t, code, errs)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 15)
	warnings, err := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-ww", "-Tutf8", "-z"}, pages...)...).
		CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(warnings))
}

func TestSourceDate(t *testing.T) {
	for _, c := range []struct{ epoch, commit, want, why string }{
		{"0", "", "1970-01-01T00:00:00Z", ""},
		{"1790000000", "2026-01-02T03:04:05+02:00", "2026-09-21T14:13:20Z", ""},
		{"", "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z", ""},
		{"", "", "", "set SOURCE_DATE_EPOCH"},
		{"yesterday", "2026-01-02T03:04:05Z", "", `SOURCE_DATE_EPOCH="yesterday": want a number of seconds`},
		{"-1", "", "", "want a number of seconds"},
		{"253402300800", "", "", "want a number of seconds"},
	} {
		date, err := sourceDate(c.epoch, c.commit)
		if c.why != "" {
			require.ErrorContains(t, err, c.why)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, date.Format("2006-01-02T15:04:05Z07:00"))
	}
}

// A directory that cannot be made is named with the reason.
func TestManualPagesNeedADirectory(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, errs := call("man", "--dir", filepath.Join(file, "man1"))
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "not a directory; give a directory that can be written")
	code, _, errs = call("man")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "man needs --dir DIR")
}
