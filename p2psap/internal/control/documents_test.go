package control

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/wire.md lists the kinds of messages.
func TestKindsInDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "wire.md"))
	require.NoError(t, err)
	var want, got []string
	for k := KindHello; k < kindsEnd; k++ {
		want = append(want, fmt.Sprintf("%d %s", k, kinds[k].name))
	}
	table := regexp.MustCompile(`(?m)^\| kind \| numbered \| body \|\n(?:\|.*\n)+`).FindString(string(text))
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+ [a-z.]+) \|`).FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	require.Equal(t, want, got)
}
