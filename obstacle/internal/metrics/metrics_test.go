package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
)

// The documentation has a row for each family with its name, labels and help, and no other.
func TestNamesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	written := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(obstacle_[a-z_]+)(?:\\{([a-z, ]+)\\})?` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		written[m[1]] = "[" + strings.ReplaceAll(m[2], ", ", " ") + "] " + m[3]
	}
	known := map[string]string{}
	for _, d := range families() {
		m := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]+)",.*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		known[m[1]] = "[" + strings.ReplaceAll(m[3], ",", " ") + "] " + strings.TrimSuffix(m[2], ".")
	}
	require.Equal(t, known, written)
}

// Names, units and types follow the conventions of Prometheus.
func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(&collector{Run{Peers: 2}, &launch.Status{}})
	require.NoError(t, err)
	require.Empty(t, problems)
}
