package file

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tables of docs/problems.md have the keys of a problem file and of an American option, and no others.
func TestKeysInDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "problems.md"))
	require.NoError(t, err)
	var found [][]string
	for _, table := range regexp.MustCompile(`(?m)^\| key \| value \| if left out \|\n(?:\|.*\n)+`).FindAllString(string(text), -1) {
		var keys []string
		for line := range strings.Lines(table) {
			first, _, _ := strings.Cut(line, " | ")
			for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(first, -1) {
				keys = append(keys, m[1])
			}
		}
		found = append(found, keys)
	}
	require.Len(t, found, 2)
	require.ElementsMatch(t, documentKeys, append(found[0], "kind"))
	require.ElementsMatch(t, optionKeys, append(found[1], "kind"))
}
