package verbs_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/libibverbs"
)

// TestSuite runs the suite over libibverbs if VERBS_DEVICES names one device, which is looped back,
// or two, separated by a comma. VERBS_GID is the index of the GID to use (default 0). VERBS_NETDEV is
// the network interface of the second end, which ip sets down and up: the test must run as root. The
// guest of make verbs sets them.
func TestSuite(t *testing.T) {
	names := strings.Split(os.Getenv("VERBS_DEVICES"), ",")
	if names[0] == "" {
		t.Skip("VERBS_DEVICES names no device: make verbs runs this in a guest")
	}
	gid, _ := strconv.Atoi(os.Getenv("VERBS_GID"))
	r := rig{
		Provider: libibverbs.New(), Devices: [2]string{names[0], names[len(names)-1]}, GIDIndex: gid,
		Open: openResources(t),
	}
	if netdev := os.Getenv("VERBS_NETDEV"); netdev != "" {
		r.SetPort = func(_ int, up bool) {
			state := map[bool]string{true: "up", false: "down"}[up]
			out, err := exec.Command("ip", "link", "set", netdev, state).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	runSuite(t, r)
}

var resourceCount = regexp.MustCompile(`\b(?:pd|cq|qp|mr|ctx) (\d+)`)

// openResources counts the RDMA resources that the kernel has open, less those open before.
func openResources(t *testing.T) func() int64 {
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
