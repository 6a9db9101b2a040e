package measure

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	headlineMark = regexp.MustCompile(`<!-- record: ([\w-]+) -->`)
	citedCommit  = regexp.MustCompile(`\[([0-9a-f]{7,8})\]`)
)

// saysOlder reports whether a headline says that what it measures has changed since.
func saysOlder(line string) bool { return strings.Contains(line, "before changes of") }

// checkHeadline returns what is wrong with a headline of a part; "": nothing.
func checkHeadline(line string, records []*Record, now *sources) (string, error) {
	cited := citedCommit.FindStringSubmatch(line)
	if cited == nil {
		return "it cites no commit as [0123abc](…)", nil
	}
	i := slices.IndexFunc(records, func(r *Record) bool {
		return strings.HasPrefix(r.Commit, cited[1]) || strings.HasPrefix(cited[1], r.Commit)
	})
	changed := []string{"what it measures: there is no record of this commit"}
	if i >= 0 {
		var err error
		if changed, err = records[i].changedSince(now); err != nil {
			return "", err
		}
	}
	switch {
	case len(changed) > 0 && !saysOlder(line):
		return `it is older than changes of ` + strings.Join(changed, ", ") + `: measure again, or write "before changes of …"`, nil
	case len(changed) == 0 && saysOlder(line):
		return `it is as new as what it measures: remove "before changes of …"`, nil
	}
	return "", nil
}

// A headline of README.md or docs/ has the mark <!-- record: PART --> in its line, and the commit of its record. If what it
// measures has changed since, the line says so.
func TestHeadlinesSayWhenTheyAreOlder(t *testing.T) {
	root, err := ModuleRoot(context.Background())
	require.NoError(t, err)
	records, err := readRecords(filepath.Join(root, "bench", "results"), filepath.Join(root, "experiments", "results"))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	now := &sources{root: root}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for at, line := range strings.Split(string(text), "\n") {
			mark := headlineMark.FindStringSubmatch(line)
			if mark == nil {
				continue
			}
			require.NotEmpty(t, partSources(mark[1]), "%s:%d: part %s", file, at+1, mark[1])
			wrong, err := checkHeadline(line, records[mark[1]], now)
			require.NoError(t, err)
			if wrong != "" {
				t.Errorf("%s:%d: the figures of %s: %s", filepath.Base(file), at+1, mark[1], wrong)
			}
		}
		if file == filepath.Join(root, "README.md") {
			figures, _, _ := strings.Cut(string(text[strings.Index(string(text), "## Figures"):]), "All figures")
			require.Equal(t, strings.Count(figures, "\n| ")-1, len(headlineMark.FindAllString(figures, -1)),
				"every row of Figures but the first has a mark")
		}
	}
}

func TestCheckHeadline(t *testing.T) {
	root := t.TempDir()
	for _, dir := range partSources("multigrid") {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, dir, "a.go"), []byte("package a\n\nvar x = 1\n"), 0o644))
	}
	sums, err := (&sources{root: root}).of("multigrid")
	require.NoError(t, err)
	records := []*Record{{Part: "multigrid", Commit: "0123abc", Sources: sums}}
	check := func(line, want string) {
		t.Helper()
		got, err := checkHeadline(line, records, &sources{root: root})
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, got)
		}
		require.Contains(t, got, want)
	}
	file := filepath.Join(root, "solver/multilevel/a.go")
	check("1.7 s [0123abc]()", "")
	check("1.7 s", "cites no commit")
	check("1.7 s [7654321]()", "no record of this commit")
	check("1.7 s, before changes of the solver [0123abc]()", "remove")
	require.NoError(t, os.WriteFile(file, []byte("// Package a.\npackage a\n\nvar x  = 1 // one\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "solver/multilevel/a_test.go"), []byte("package a\n"), 0o644))
	check("1.7 s [0123abc]()", "") // comments, layout and tests do not count
	require.NoError(t, os.WriteFile(file, []byte("package a\n\nvar x = 2\n"), 0o644))
	check("1.7 s [0123abc]()", "older than changes of solver/multilevel: ")
	check("1.7 s, before changes of the solver [0123abc]()", "")
	records[0].Sources = nil // an older record
	check("1.7 s [0123abc]()", "older than changes of")
}
