//go:build linux

package obstacle_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// Counters of a run do not fall when a peer is lost, and the answer counts what was sent before.
func TestSumsOfARunWithALoss(t *testing.T) {
	t.Parallel()
	closeGate(t, gate.Gate{})
	r := start(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3", "--metrics", "0", "--http-token", "none",
		"--format", "json")
	address := r.said(`metrics at (http://\S+/metrics)`)[1]
	sample := regexp.MustCompile(`(?m)^obstacle_halo_messages_sent_total (\S+)$`)
	messages := func() float64 {
		answer, err := http.Get(address)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		m := sample.FindSubmatch(text)
		if m == nil {
			return 0 // the run is not shown yet
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		require.NoError(t, err)
		return v
	}
	// At the gate each of the four ends has sent a face in each of five sweeps.
	await.Until(t, func() bool { return messages() >= 20 }, "all peers to report")
	before := messages()
	require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
	r.said("recovered: all peers relax again")
	require.GreaterOrEqual(t, messages(), before)
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	newest := 0.
	for _, x := range s.Sessions {
		if strings.HasPrefix(x.Name, "halo/") {
			newest += float64(x.MessagesSent)
		}
	}
	require.GreaterOrEqual(t, float64(s.Messages), newest+before)
}
