//go:build linux

package obstacle_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// sweepsOf returns the sweeps of a rank that the metrics of a run show.
func sweepsOf(t *testing.T, metrics string, rank int) int {
	t.Helper()
	answer, err := http.Get(metrics)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	m := regexp.MustCompile(fmt.Sprintf(`(?m)^obstacle_sweeps_total{rank="%d"} (\d+)$`, rank)).FindSubmatch(text)
	if m == nil {
		return -1 // it has not been reported
	}
	n, err := strconv.Atoi(string(m[1]))
	require.NoError(t, err)
	return n
}

// In a hybrid run only the cluster of the loss stops. Here its recovery cannot end before a stopped survivor goes on, and
// the other cluster relaxes until then.
func TestOtherClusterRelaxesDuringARecovery(t *testing.T) {
	t.Parallel()
	args := []string{"--peers", "4", "--partition", "slabs", "--scheme", "hybrid", "--clusters", "2",
		"--suspect", "10m", "--metrics", "0", "--http-token", "none", "--log-level", "debug"}
	for rank := range 4 { // four processes that are slowed down do not oversubscribe one processor
		args = append(args, "--slowdown", fmt.Sprintf("%d:4", rank))
	}
	r := held(t, gate.Gate{}, args...)
	metrics := r.said(`metrics at (http://127\.0\.0\.1:\d+/metrics)`)[1]
	await.Until(t, func() bool { return sweepsOf(t, metrics, 2) >= 0 && sweepsOf(t, metrics, 3) >= 0 }, "the other cluster to report")
	survivor := r.pid(0)
	stop(t, survivor)
	require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
	before := map[int]int{}
	for rank := 2; rank < 4; rank++ {
		r.said(fmt.Sprintf(`"rank":%d.*relaxing on until the next epoch begins`, rank))
		before[rank] = sweepsOf(t, metrics, rank)
	}
	r.open()
	for rank := range before {
		await.Until(t, func() bool { return sweepsOf(t, metrics, rank) > before[rank]+10 }, "sweeps of rank %d after the loss", rank)
	}
	require.NoError(t, syscall.Kill(survivor, syscall.SIGCONT))
	r.said(`"epoch":1,.*recovered`)
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Len(t, s.Losses, 1)
	require.Equal(t, 1, s.Losses[0].Rank)
}
