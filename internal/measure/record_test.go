package measure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the directory of the module.
const root = "../.."

// docs/performance.md and the pages beside the records are what the records make of them, and there is one record of a
// part for each kind of machine: a file has the name of both. If this fails: make performance.
func TestPerformanceIsMadeFromTheRecords(t *testing.T) {
	all, err := pages(root)
	require.NoError(t, err)
	for page, sections := range all {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		want, err := Fill(string(text), sections)
		require.NoError(t, err)
		require.Equal(t, want, string(text), "%s: run make performance", page)
	}
	for _, program := range []string{"bench", "experiments"} {
		files, err := filepath.Glob(filepath.Join(root, program, "results", "*.md"))
		require.NoError(t, err)
		for _, f := range files {
			require.Contains(t, all, f, "a page without a record")
		}
	}
}

// The age of every headline is known: its part has sources.
func TestPartsOfHeadlinesHaveSources(t *testing.T) {
	now := &sources{root: root}
	for _, rows := range headlines {
		for _, row := range rows {
			sums, err := now.of(row[0])
			require.NoError(t, err, row[0])
			require.NotEmpty(t, sums, "partSources: part %s", row[0])
		}
	}
}

// The sentence below a table of headlines names the parts whose sources differ from those of their records, once.
func TestHeadlinesNameThePartsThatAreOlder(t *testing.T) {
	of, now := example(), &sources{root: root}
	of.Part = "kernels"
	rows := [][2]string{{"kernels", "go"}, {"kernels", "C"}}
	records := map[string][]*Record{"kernels": {of}}
	text, err := headlineTable(now, records, rows)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, "\n\nMeasured before changes of the code that they measure: kernels.\n"), text)
	of.Sources, err = now.of("kernels")
	require.NoError(t, err)
	text, err = headlineTable(now, records, rows)
	require.NoError(t, err)
	require.NotContains(t, text, "before changes of")
}

// docs/performance.md is short enough to be read: its tables have at most 60 rows.
func TestPerformanceIsShort(t *testing.T) {
	rows := 0
	for _, s := range headlines {
		rows += len(s)
	}
	require.LessOrEqual(t, rows, 60)
}

func TestHeadlinesAreOfTheNewestRecordThatHasThem(t *testing.T) {
	old, of, now := example(), example(), &sources{root: root}
	old.dir, of.dir = "bench/results", "bench/results"
	old.Commit, of.Results = "89abcde", of.Results[1:]
	records := map[string][]*Record{"sweep": {of, old}}
	text, err := headlineTable(now, records, [][2]string{{"sweep", "go"}})
	require.NoError(t, err)
	abbreviated, err := headlineTable(now, records, [][2]string{{"sweep", "g…"}})
	require.NoError(t, err)
	require.Equal(t, text, abbreviated)
	require.Equal(t, headlineHeader+"| go | 0.3 GLUP/s | C 0.6 | 0.5 | ≥ 0.9 × C: **not met** | "+
		"[89abcde](../bench/results/sweep.md), 2026-11-23 |\n", text)
	_, err = headlineTable(now, records, [][2]string{{"sweep", "rust"}})
	require.ErrorContains(t, err, `no record of part sweep has "rust"`)
}

func example() *Record {
	r := newRecord(context.Background(), root, "sweep", 3)
	r.Date = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	r.Commit, r.Changed = "0123abc", false
	r.Processor, r.Cores = "Intel(R) Xeon(R) Processor", 2
	r.LoadBefore = "0.1 0.2 0.3" // the machine's changes every five seconds
	r.Results = []Result{
		Over("go", "GLUP/s", []float64{0.3}).Against("C", []float64{0.6}).RatioAtLeast(0.9).Because("A reason."),
		{Name: "C", Note: "gcc"}, Over("hidden", "s", []float64{1}).AsDetail(),
	}
	return r
}

func TestRecordsAreReplacedByPartAndMachine(t *testing.T) {
	dir := t.TempDir()
	old, other := example(), example()
	other.Cores = 4
	for _, r := range []*Record{old, other, example()} {
		_, err := r.write(dir)
		require.NoError(t, err)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "sweep-intel-xeon-2-cores.json", files[0].Name())
	back, err := readRecords(dir)
	require.NoError(t, err)
	require.Len(t, back["sweep"], 2)
	old.dir = dir
	for i := range old.Results {
		old.Results[i].rounds = nil
	}
	require.Contains(t, back["sweep"], old)

	require.NoError(t, os.Rename(filepath.Join(dir, files[0].Name()), filepath.Join(dir, "sweep-2.json")))
	_, err = readRecords(dir)
	require.ErrorContains(t, err, "named sweep-intel-xeon-2-cores.json")
}

func TestTable(t *testing.T) {
	text := table([]*Record{example()})
	require.Contains(t, text, "| go [1] | 0.3 GLUP/s | C 0.6 | 0.5 | 0.3 to 0.3 | ≥ 0.9 × C: **not met** | "+
		"Intel Xeon, 2 cores | 0123abc | 2026-11-23 |\n")
	require.Contains(t, text, "| C [2] |  |  |  |  |  |")
	require.Contains(t, text, "\n1. A reason.\n2. gcc\n")
	require.NotContains(t, text, "hidden")
}

func TestFillReplacesBetweenItsComments(t *testing.T) {
	const text = "a\n<!-- t: begin -->\nold\n<!-- t: end -->\nb\n<!-- u: begin -->\n<!-- u: end -->\n"
	out := text
	for range 2 {
		var err error
		out, err = Fill(out, map[string]string{"t": "new $1\n"})
		require.NoError(t, err)
		require.Equal(t, "a\n<!-- t: begin -->\nnew $1\n<!-- t: end -->\nb\n<!-- u: begin -->\n<!-- u: end -->\n", out)
	}
	_, err := Fill(text, map[string]string{"other": ""})
	require.ErrorContains(t, err, "<!-- other: begin -->")
	_, err = Fill("<!-- t: begin -->\n<!-- u: end -->", nil)
	require.ErrorContains(t, err, "the end of section u")
}

func TestSelectedParts(t *testing.T) {
	p := Program{Parts: []Part{{Name: "sweep"}, {Name: "memory"}}}
	all, err := p.selected()
	require.NoError(t, err)
	require.Len(t, all, 2)
	p.only = "memory"
	one, err := p.selected()
	require.NoError(t, err)
	require.Equal(t, "memory", one[0].Name)
	p.only = "memory,sleep"
	_, err = p.selected()
	require.ErrorContains(t, err, "-only sleep: there are sweep,memory")
}
