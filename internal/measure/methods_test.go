package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// The percentages of docs/methods.md that old values cost are those of the record of the experiment.
func TestCostOfOldValuesIsThatOfTheRecord(t *testing.T) {
	records, err := readRecords(filepath.Join(root, "experiments", "results"))
	require.NoError(t, err)
	require.NotEmpty(t, records["schemes"])
	text, err := os.ReadFile(filepath.Join(root, "docs", "methods.md"))
	require.NoError(t, err)
	cost := func(name string) float64 {
		_, r := newest(records["schemes"][:1], name)
		require.NotNil(t, r, name)
		return r.Value
	}
	const more = "more sweeps than synchronous"
	require.Contains(t, strings.Join(strings.Fields(string(text)), " "),
		fmt.Sprintf("takes %.1f %% more sweeps than the synchronous iteration in 8 slabs and %.1f %% in 8 boxes",
			cost("64³, 8 slabs, values 0 to 4 sweeps old: "+more), cost("64³, 8 boxes, values 0 to 4 sweeps old: "+more)))
	const delays = "delay:4 over latencies of half a sweep to three and a half: "
	require.Contains(t, strings.Join(strings.Fields(string(text)), " "), fmt.Sprintf("with such ages take %.1f %% and %.1f %%",
		cost("64³, 8 slabs, "+delays+more), cost("64³, 8 boxes, "+delays+more)))
}
