package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
)

// The text states from where a run continued, what was written and how to continue it.
func TestCheckpointText(t *testing.T) {
	for _, c := range []struct {
		s    Solution
		want string
	}{
		{Solution{}, ""},
		{Solution{Checkpoint: &launch.Saved{Directory: "c"}}, "checkpoint\tc: none was due\n"},
		{
			Solution{Checkpoint: &launch.Saved{Directory: "c", Written: 2, Sweeps: 40}, Resumable: true},
			"checkpoint\tc, after 40 iterations\n\tcontinue with: obstacle resume c\n",
		},
		{
			Solution{
				Checkpoint: &launch.Saved{Directory: "d", Failed: 2, Error: "box: disk full"}, Resumable: true,
				Resumed: &Resumed{From: "d/manifest-3.json", Step: 5, Sweeps: 7}, Evolution: &Evolution{},
			},
			"resumed\tfrom d/manifest-3.json, after time step 5\n" +
				"checkpoint\tNOT WRITTEN 2 times: box: disk full\n\tcontinue with: obstacle resume d\n",
		},
		{Solution{Checkpoint: &launch.Saved{Failed: 1, Error: "e"}}, "checkpoint\tNOT WRITTEN once: e\n"},
	} {
		var b bytes.Buffer
		c.s.checkpoint(&b)
		require.Equal(t, c.want, b.String())
	}
}
