//go:build linux

package obstacle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes solve with every method and scheme over every network of one host. Faces are longer than what a link
// copies, and those of multigrid's grids are of all lengths. Synchronous answers have the same bits over every network.
func TestMethodsOverNetworks(t *testing.T) {
	const n = "63"
	runs := []string{
		"richardson sync", "richardson async", "richardson delay:2", "sor sync", "multigrid sync", "schwarz sync",
		"schwarz async",
	}
	if testing.Short() {
		runs = []string{"richardson async", "multigrid sync"}
	}
	for _, run := range runs {
		method, scheme, _ := strings.Cut(run, " ")
		sums := map[string]float64{}
		for _, network := range []string{"shm", "stream", "ether"} {
			if network == "stream" && scheme != "sync" {
				continue
			}
			r := start(t, "solve", "membrane", "--method", method, "--scheme", scheme, "--n", n, "--tol", "1e-2",
				"--peers", "2", "--threads", "1", "--network", network, "--format", "json")
			require.Equal(t, 0, r.wait(patience), "%s over %s", run, network)
			sums[network] = float64(r.solution().Sum)
		}
		for network, sum := range sums {
			if scheme == "sync" && method != "schwarz" { // which chooses its inner cycles by their time
				require.Equal(t, sums["shm"], sum, "%s over %s", run, network)
			}
		}
	}
}
