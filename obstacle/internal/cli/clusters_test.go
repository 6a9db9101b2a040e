package cli

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// rows returns a catalog that lists the micro-protocols but cannot build them.
func rows(t *testing.T, names ...string) *catalog.Set {
	t.Helper()
	c := microproto.NewCatalog()
	for _, name := range names {
		require.NoError(t, c.Add(name, func(microproto.Options) (microproto.MicroProtocol, error) { return nil, nil }))
	}
	return &catalog.Set{Protocols: c}
}

func slabs(t *testing.T, peers int) problem.Partition {
	t.Helper()
	p, err := problem.Slabs([3]int{8, 8, 8}, peers, nil)
	require.NoError(t, err)
	return p
}

func TestClustersAreRunsOfRanks(t *testing.T) {
	q := &request{clusters: 3, catalog: rows(t, p2psap.TableRows()...)}
	label, err := q.clusterLabels(slabs(t, 8))
	require.NoError(t, err)
	var got []string
	for rank := range 8 {
		l, err := label(rank, "h", nil)
		require.NoError(t, err)
		got = append(got, l)
	}
	require.Equal(t, []string{"0", "0", "0", "1", "1", "1", "2", "2"}, got)

	q.clusters = 0
	label, err = q.clusterLabels(slabs(t, 8))
	require.NoError(t, err)
	require.Nil(t, label, "clusters are measured")
}

func TestClustersNeedTheirMicroProtocols(t *testing.T) {
	c := p2psap.Column{Mode: microproto.ModeSynchronous, Intra: true}
	q := &request{clusters: 2, catalog: rows(t, append(p2psap.TableProtocols(c), "Asynchronous", "DuplicateAck")...)}
	_, err := q.clusterLabels(slabs(t, 2))
	require.ErrorContains(t, err, "--clusters 2: sessions between clusters need WindowCongestionControl, TCPNewRenoCongestionAvoidance, DCCPAck")
	q.clusters = 1
	_, err = q.clusterLabels(slabs(t, 2))
	require.NoError(t, err)
}

func TestTopology(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t.yaml")
	require.NoError(t, os.WriteFile(name, []byte("clusters: {a: [ga, 10.1.0.0/16], b: [gb]}\n"), 0o600))
	q := &request{topology: name, rendezvous: "h:1", catalog: rows(t, p2psap.TableRows()...)}
	label, err := q.clusterLabels(slabs(t, 2))
	require.NoError(t, err)
	l, err := label(1, "x", []netip.Addr{netip.MustParseAddr("10.1.2.3")})
	require.NoError(t, err)
	require.Equal(t, "a", l)
	_, err = label(1, "x", nil)
	require.ErrorContains(t, err, `the host "x" (no address) is in no cluster`)

	q.rendezvous = ""
	_, err = q.clusterLabels(slabs(t, 2))
	require.ErrorContains(t, err, "is in no cluster", "peers on this host are known before they start")
	require.Equal(t, ExitUsage, exitCode(err))

	q.catalog = rows(t)
	_, err = q.clusterLabels(slabs(t, 2))
	require.ErrorContains(t, err, "sessions between clusters need")
}
