package doctest

import (
	"cmp"
	"encoding/json"
	"flag"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// asProgram is the environment variable that makes this test binary the program obstacle.
const asProgram = "DOCTEST_AS_PROGRAM"

var long = flag.Bool("long", false, "run the blocks that take minutes, too")

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(obstacle.Main(catalog.New()))
	}
	os.Exit(m.Run())
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// TestDocuments runs every fenced block that is not marked otherwise. With -short it parses them.
func TestDocuments(t *testing.T) {
	all := pages(t)
	for _, page := range slices.Sorted(maps.Keys(all)) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, b := range all[page] {
				parse(t, b)
			}
			if testing.Short() {
				return
			}
			runPage(t, all[page])
			runPython(t, all[page])
			compile(t, all[page])
			run := 0
			for _, b := range all[page] {
				if why := b.left(); why != "" {
					t.Logf("not run: %v: %s", b, why)
				} else {
					run++
				}
			}
			t.Logf("%d of %d blocks run", run, len(all[page]))
		})
	}
}

// parse checks the language of a block and its syntax.
func parse(t *testing.T, b *block) {
	marked := b.notes["not run"] != ""
	switch b.language {
	case "sh":
		if installed("sh") {
			c := exec.Command("sh", "-n")
			c.Stdin = strings.NewReader(b.notes["run"] + "\n" + b.text)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%v: %s", b, out)
		}
	case "go":
		_, err := parser.ParseFile(token.NewFileSet(), b.String(), b.source(), parser.SkipObjectResolution)
		require.NoError(t, err, "%v", b)
	case "json":
		require.True(t, json.Valid([]byte(b.text)), "%v: it is not JSON", b)
	case "text", "yaml", "python", "table":
	default:
		require.True(t, marked, "%v: language %q: doc.go has those that are run; mark another one with "+
			"<!-- not run: REASON -->", b, cmp.Or(b.language, "(none)"))
	}
}

// source returns the Go file of a block. A block without a name is the body of a function with the parameters given.
func (b *block) source() string {
	if b.name != "" {
		return b.text
	}
	return "package p\n\nfunc _(" + b.notes["given"] + ") {\n" + b.text + "\n}\n"
}
