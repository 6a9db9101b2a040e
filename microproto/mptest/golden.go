package mptest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The flag is shared by every test binary that imports this package.
var update = flag.Bool("update", false, "write golden files anew")

// Golden fails the test unless text equals testdata/<name>. With -update it writes the file.
func Golden(tb testing.TB, name, text string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		noError(tb, os.MkdirAll(filepath.Dir(path), 0o755), "golden file")
		noError(tb, os.WriteFile(path, []byte(text), 0o644), "golden file")
		return
	}
	want, err := os.ReadFile(path)
	noError(tb, err, "run the test with -update to write the golden file")
	if string(want) == text {
		return
	}
	line, was, is := firstDifference(string(want), text)
	tb.Fatalf("%s differs from line %d on; run with -update if the change is meant\n  golden: %s\n  now:    %s",
		path, line, was, is)
}

// firstDifference returns the number of the first line that differs, from 1, and its two
// versions. A line that is missing is "".
func firstDifference(a, b string) (line int, inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for line < min(len(as), len(bs)) && as[line] == bs[line] {
		line++
	}
	at := func(lines []string) string {
		return strings.Join(lines[min(line, len(lines)):min(line+1, len(lines))], "")
	}
	return line + 1, at(as), at(bs)
}
