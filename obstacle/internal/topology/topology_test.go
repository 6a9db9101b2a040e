package topology

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const two = `# two sites
clusters:
  nancy:
    - graphene-1
    - 10.1.0.0/16
  lyon: [sagittaire-3.lyon.example, 192.0.2.7, "fd00:2::/64", 10.1.9.0/24]
`

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func TestCluster(t *testing.T) {
	top, err := Parse("two.yaml", []byte(two))
	require.NoError(t, err)
	require.Equal(t, []string{"nancy", "lyon"}, top.Clusters())
	for _, x := range []struct {
		host string
		at   []netip.Addr
		want string
		err  string
	}{
		{"graphene-1", nil, "nancy", ""},
		{"GRAPHENE-1", nil, "nancy", ""},
		{"graphene-1.nancy.example", nil, "nancy", ""},
		{"graphene-2", addresses("10.1.2.3"), "nancy", ""},
		{"graphene-2", addresses("172.16.0.1", "10.1.2.3"), "nancy", ""},
		{"sagittaire-3.lyon.example", nil, "lyon", ""},
		{"x", addresses("192.0.2.7"), "lyon", ""},
		{"x", addresses("::ffff:192.0.2.7"), "lyon", ""},
		{"x", addresses("fd00:2::9"), "lyon", ""},
		{"x", addresses("10.1.9.4"), "lyon", ""}, // the narrower network
		{"sagittaire-3", nil, "", `two.yaml: the host "sagittaire-3" (no address) is in no cluster`},
		{"x", addresses("192.0.2.8", "fd00:3::1"), "", `two.yaml: the host "x" (192.0.2.8, fd00:3::1) is in no cluster`},
		{"graphene-1", addresses("192.0.2.7"), "", `two.yaml:6: the host "graphene-1" (192.0.2.7) is in the clusters "nancy" (graphene-1, line 4) and "lyon" (192.0.2.7)`},
		{"x", addresses("10.1.0.1", "10.1.9.1"), "", `two.yaml:6: the host "x"`},
	} {
		got, err := top.Cluster(x.host, x.at)
		require.Equal(t, x.want, got, "%s %v", x.host, x.at)
		if x.err != "" {
			require.ErrorContains(t, err, x.err)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, x := range []struct{ what, text, err string }{
		{"empty", "", "t.yaml: the topology file is empty"},
		{"two documents", "clusters: {a: [x]}\n---\nclusters: {b: [y]}\n", "one document"},
		{"not YAML", "clusters:\n  a: [x\n", "t.yaml:2: this is not YAML"},
		{"a list", "- a\n", "t.yaml:1: there should be keys with values (clusters: …), not a list"},
		{"a wrong key", "clusters: {a: [x]}\nhosts: 3\n", `t.yaml:2: unknown key "hosts"`},
		{"no clusters", "clusters: {}\n", "t.yaml:1: clusters: there should be clusters by name"},
		{"clusters as a list", "clusters:\n  - a\n", "t.yaml:1: clusters: there should be clusters by name (name: …), not a list"},
		{"nothing in it", "clusters:\n", "clusters: there should be clusters by name (name: …), not nothing"},
		{"a cluster without hosts", "clusters:\n  a: []\n", `t.yaml:2: clusters.a: there should be at least one host`},
		{"a cluster of one word", "clusters:\n  a: x\n", `t.yaml:2: clusters.a: there should be a list of hosts, not "x"`},
		{"a cluster twice", "clusters:\n  a: [x]\n  a: [y]\n", "t.yaml:3"},
		{"a host in two clusters", "clusters:\n  a: [x]\n  b:\n    - y\n    - X\n", `t.yaml:5: clusters.b[1]: X is also in cluster "a" (line 2): a host belongs to one cluster`},
		{"a network in two clusters", "clusters:\n  a: [10.0.0.0/8]\n  b: [10.9.0.0/8]\n", `t.yaml:3: clusters.b[0]: 10.9.0.0/8 is also in cluster "a" (line 2)`},
		{"a host twice", "clusters:\n  a: [x, x]\n", `t.yaml:2: clusters.a[1]: x is already in this cluster (line 2)`},
		{"a wrong network", "clusters:\n  a: [10.0.0.0/33]\n", `t.yaml:2: clusters.a[0]: "10.0.0.0/33" is not a network`},
		{"a nested list", "clusters:\n  a: [[x]]\n", "want a name, an address or a network such as 10.1.0.0/16, not a list"},
		{"a null host", "clusters:\n  a: [null]\n", "not nothing"},
		{"spaces", "clusters:\n  a: [\"x y\"]\n", `not "x y"`},
		{"a name too long", "clusters:\n  " + strings.Repeat("a", 300) + ": [x]\n", "1 to 255 bytes"},
		{"control characters", "clusters: {a: [\x01]}\n", "control characters"},
		{"too long", strings.Repeat("#", 1<<17), "more than the 65536 allowed"},
	} {
		t.Run(x.what, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(x.text))
			require.ErrorContains(t, err, x.err)
			var located *Error
			require.ErrorAs(t, err, &located)
		})
	}
}

func TestRead(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorContains(t, err, "none.yaml: there is no such file")
	name := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(name, []byte(two), 0o600))
	top, err := Read(name)
	require.NoError(t, err)
	require.Len(t, top.Clusters(), 2)
	require.NoError(t, os.WriteFile(name, make([]byte, 1<<17), 0o600))
	_, err = Read(name)
	require.ErrorContains(t, err, "more than the 65536 allowed")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte("clusters: {a: [1, 2.5, true, ~]}"))
	f.Add([]byte("clusters: &x {a: *x}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		top, err := Parse("t.yaml", text)
		if err != nil {
			var located *Error
			if !errors.As(err, &located) {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		if len(top.Clusters()) == 0 || len(top.entries) == 0 {
			t.Fatal("a topology without hosts")
		}
		_, _ = top.Cluster("x", addresses("10.0.0.1"))
	})
}
