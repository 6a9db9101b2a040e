//go:build linux

package obstacle_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
)

// follows reads the model of a page until it satisfies a condition, and returns the newest run.
func follows(t *testing.T, page string, found func(r *monitor.Run) bool) monitor.Run {
	t.Helper()
	response, err := (&http.Client{Timeout: patience}).Get(page + "events")
	require.NoError(t, err)
	defer response.Body.Close()
	var s monitor.Snapshot
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		var i monitor.Increment
		require.NoError(t, json.Unmarshal([]byte(data), &i))
		s.Apply(i)
		if n := len(s.Runs); n > 0 && found(&s.Runs[n-1]) {
			return s.Runs[n-1]
		}
	}
	t.Fatalf("the page ended: %v", lines.Err())
	return monitor.Run{}
}

// The page of obstacle attach shows what another leader knows of a run whose launcher was killed: progress, times, the
// leader, and the command with which the run is found again.
func TestAttachShowsTheRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds of several processes")
	}
	t.Parallel() // its peers wait at a gate
	b := startByHand(t, "--scheme", "async", "--suspect", "1m", "--http", "127.0.0.1:0", "--http-token", "none")
	http := b.said(`page at (http://\S+)`)[1]
	r := follows(t, http, func(r *monitor.Run) bool { return len(r.State.Keepers) == 3 })
	require.Equal(t, b.keepers, r.State.Keepers)
	b.said(`keepers of the run: .* obstacle attach ` + strings.Join(b.keepers[1:], " ") + ` --secret-file ` + b.secret +
		` --http 127.0.0.1:\d+ --http-token none`)
	require.Contains(t, r.Info.Attach, "--secret-file "+b.secret+" --http 127.0.0.1:")

	b.signal(syscall.SIGKILL)
	leader := b.leads(b.peers)
	at := leader.said(`"address":"([^"]*)".*this process leads it now`)[1]
	report := filepath.Join(t.TempDir(), "run.html")
	a := start(t, "attach", b.keepers[2], "--secret-file", b.secret, "--format", "json", "--http", "127.0.0.1:0",
		"--http-token", "none", "--report", report)
	http = a.said(`page at (http://\S+)`)[1]
	r = follows(t, http, func(r *monitor.Run) bool {
		return r.State.Leader == at && r.State.Residual > 0 && len(r.Places) == 4 && len(r.Sessions) > 0 && len(r.Reads) > 0 &&
			!slices.ContainsFunc(r.Peers, func(p monitor.Peer) bool { return p.Relaxing == 0 || p.Sweep == 0 }) && len(r.Samples) > 1
	})
	require.Equal(t, "membrane", r.Info.Problem)
	require.Equal(t, 1e-6, r.Info.Tolerance)
	require.True(t, r.Info.Attached)
	require.Empty(t, r.Info.Silent)
	require.Equal(t, "solving", r.State.Phase)
	pids := map[string]bool{}
	for _, p := range r.Places {
		pids[p.Process] = true
	}
	require.Len(t, pids, 4)
	require.NotEmpty(t, r.State.Keepers)

	b.open()
	require.Equal(t, 0, a.wait(patience))
	s := a.solution()
	require.True(t, s.Converged)
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	_, saved, found := strings.Cut(string(text), `id="saved">`)
	require.True(t, found)
	saved, _, _ = strings.Cut(saved, "</script>")
	var all struct {
		Snapshot monitor.Snapshot
		Fields   map[int]any
	}
	require.NoError(t, json.Unmarshal([]byte(saved), &all))
	end := all.Snapshot.Runs[0].State
	require.Equal(t, "ended", end.Phase)
	require.Equal(t, s.RelativeResidual, end.Residual)
	require.Equal(t, s.ContactPoints, end.Contact)
	require.Len(t, all.Fields, 1)
	require.Greater(t, end.Elapsed, 0.0)
}
