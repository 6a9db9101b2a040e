package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tables of docs/methods.md are those of the record of the experiment.
func TestExchangesOfSchwarzAreThoseOfTheRecord(t *testing.T) {
	root, err := ModuleRoot(context.Background())
	require.NoError(t, err)
	records, err := readRecords(filepath.Join(root, "experiments", "results"))
	require.NoError(t, err)
	require.NotEmpty(t, records["schwarz"])
	results := map[string]Result{}
	for _, r := range records["schwarz"][0].Results {
		results[r.Name] = r
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "methods.md"))
	require.NoError(t, err)
	for _, peers := range []int{8, 64} {
		row := fmt.Sprintf("| %d |", peers)
		for _, overlap := range []int{1, 2, 4, 8} {
			name := fmt.Sprintf("64³, %d peers, overlap %d, ", peers, overlap)
			row += fmt.Sprintf(" %g (%g) |", results[name+"coarse grid of 1/64 of the points: exchanges"].Value,
				results[name+"no coarse correction: exchanges"].Value)
		}
		require.Contains(t, string(text), row+"\n")
	}
	for i, peers := range []int{8, 27, 64} {
		r := results[fmt.Sprintf("%d³, %d peers, overlap 4, asynchronous, with coarse correction: relaxations of the busiest peer",
			16*(i+2), peers)]
		require.Len(t, r.Peers, 1)
		require.Contains(t, string(text), fmt.Sprintf("| %d | %g | %g |\n", peers, r.Value, r.Peers[0].Value))
	}
}
