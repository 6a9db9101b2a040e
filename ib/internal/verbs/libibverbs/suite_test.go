//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/suite"
)

// The suite runs where VERBS_DEVICES names one device, which is looped back, or two,
// joined by a comma. VERBS_GID is the index of the GID used (default 0), VERBS_NETDEV
// the network interface of the second end, set down and up by ip: the test runs as root.
// The guest of make verbs sets them.
func TestSuite(t *testing.T) {
	names := strings.Split(os.Getenv("VERBS_DEVICES"), ",")
	if names[0] == "" {
		t.Skip("VERBS_DEVICES names no device: make verbs runs this in a guest")
	}
	gid, _ := strconv.Atoi(os.Getenv("VERBS_GID"))
	rig := suite.Rig{
		Provider: New(), Devices: [2]string{names[0], names[len(names)-1]}, GIDIndex: gid,
		Open: resources(t),
	}
	if netdev := os.Getenv("VERBS_NETDEV"); netdev != "" {
		rig.SetPort = func(_ int, up bool) {
			state := map[bool]string{true: "up", false: "down"}[up]
			out, err := exec.Command("ip", "link", "set", netdev, state).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	suite.Run(t, rig)
}

var resourceCount = regexp.MustCompile(`\b(?:pd|cq|qp|mr|ctx) (\d+)`)

// resources counts what the kernel has open for its users: what rdma says, without
// what was there before.
func resources(t *testing.T) func() int64 {
	count := func() (n int64) {
		out, err := exec.Command("rdma", "resource", "show").CombinedOutput()
		require.NoError(t, err, "%s", out)
		found := resourceCount.FindAllStringSubmatch(string(out), -1)
		require.NotEmpty(t, found, "%s", out)
		for _, f := range found {
			v, err := strconv.ParseInt(f[1], 10, 64)
			require.NoError(t, err)
			n += v
		}
		return n
	}
	before := count()
	return func() int64 { return count() - before }
}
