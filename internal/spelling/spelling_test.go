package spelling

import (
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
