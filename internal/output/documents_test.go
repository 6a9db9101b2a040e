package output

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of docs/problems.md has the extensions of all formats, and no others.
func TestFormatsInDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "problems.md"))
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)^\| extension \| content \|\n(?:\|.*\n)+`).FindString(string(text))
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\.[a-z.]+)` \\|").FindAllStringSubmatch(table, -1) {
		listed = append(listed, m[1])
	}
	require.ElementsMatch(t, append([]string{XDMFExtension, SeriesExtension, ExerciseExtension}, extensions...), listed)
}
