//go:build linux

package obstacle_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
)

// A run with --metrics serves the reports of its peers. A port that is in use ends it before anything is computed.
func TestMetrics(t *testing.T) {
	r := endless(t, "async", "--metrics", "0", "--http-token", "none")
	address := r.said(`metrics at (http://127\.0\.0\.1:\d+/metrics)`)[1]
	text := ""
	value := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			return -1
		}
		v, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return v
	}
	await.Until(t, func() bool {
		answer, err := http.Get(address)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.Contains(t, answer.Header.Get("Content-Type"), "text/plain; version=0.0.4")
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		text = string(b)
		return value("obstacle_halo_messages_sent_total") > 0 && value(`obstacle_sweeps_total{rank="2"}`) > 0 &&
			value("obstacle_relative_residual_ratio") > 0 && value("obstacle_relative_residual_ratio") < 1 && // 1 at the start
			strings.Contains(text, `peer="1",rank="0",session="halo/0-1"} 1`)
	}, "the run to report")
	require.Equal(t, 1.0, value(`obstacle_phase{phase="solving"}`))
	require.Equal(t, 3.0, value("obstacle_peers"))
	require.Equal(t, float64(side*side*side), value("obstacle_grid_points"))
	require.Zero(t, value("obstacle_lost_peers"))
	require.Positive(t, value("process_resident_memory_bytes"))
	other, err := http.Get(address + "/debug/pprof/")
	require.NoError(t, err)
	require.NoError(t, other.Body.Close())
	require.Equal(t, http.StatusNotFound, other.StatusCode)

	port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(address)[1]
	taken := start(t, "solve", "membrane", "--n", "8", "--metrics", ":"+port)
	require.Equal(t, 2, taken.wait(patience))
	taken.said("--metrics 127.0.0.1:" + port + ": .*address already in use")

	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
	_, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
