package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSuggest(t *testing.T) {
	known := []string{"npy", "scale", "reaction"}
	for wrong, want := range map[string]string{
		"nyp": "npy", "sclae": "scale", "reacton": "reaction", "react": "reaction", "Scale": "scale",
		"z": "", "flip": "", "": "", "diffusion": "",
	} {
		if want != "" {
			want = ` (did you mean "` + want + `"?)`
		}
		require.Equal(t, want, Suggest(wrong, known), wrong)
	}
}

// Of names that begin like the wrong one, the nearest is suggested; of equally near ones, all.
func TestSuggestTheNearest(t *testing.T) {
	known := []string{"--peer-timeout", "--peers", "--tol", "--out", "--out-every", "--threads", "--pin", "--mtu", "--n"}
	for wrong, want := range map[string]string{
		"--peer": `"--peers"`, "--tolerance": `"--tol"`, "--output": `"--out"`, "--thread": `"--threads"`,
		"--pim": `"--pin"`, "--pi": `"--pin"`, "--out-ever": `"--out-every"`, "--peer-time": `"--peer-timeout"`,
		"--tul": `"--tol"`, "--mtuu": `"--mtu"`, "--mout": `"--out"`,
	} {
		require.Equal(t, " (did you mean "+want+"?)", Suggest(wrong, known), wrong)
	}
	require.Equal(t, ` (did you mean "cat" or "cut"?)`, Suggest("cot", []string{"dog", "cat", "cut", "cat"}))
	require.Equal(t, ` (did you mean "cat" or "cet" or "cit"?)`, Suggest("cot", []string{"cat", "cet", "cit", "cut"}))
	require.Empty(t, Suggest("--tol"+strings.Repeat("x", 300), known))
	require.Empty(t, Suggest("in", []string{"init", "into"}), "two letters are no abbreviation")
}
