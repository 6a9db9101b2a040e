package cli

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/topology"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// clusterLabels returns the function that declares the clusters of peers, by --clusters or --topology, or nil if they
// are to be measured.
func (q *request) clusterLabels(p problem.Partition) (launch.Label, error) {
	peers := p.Peers()
	switch {
	case q.clusters < 0:
		return nil, usage("--clusters %d: want 1 or more, or 0 to measure them", q.clusters)
	case q.clusters > 0 && q.topology != "":
		return nil, usage("--clusters and --topology both declare clusters: give one of them")
	case q.clusters > peers:
		return nil, usage("--clusters %d with %d peers: every cluster has at least one", q.clusters, peers)
	case q.clusters > 0:
		if q.clusters > 1 {
			if err := q.needInterCluster(fmt.Sprintf("--clusters %d", q.clusters)); err != nil {
				return nil, err
			}
		}
		clusters := problem.Clusters(p, q.clusters)
		return func(rank int, _ string, _ []netip.Addr) (string, error) {
			return strconv.Itoa(clusters[rank]), nil
		}, nil
	case q.topology == "":
		return nil, nil
	}
	t, err := readTopology(q.topology)
	if err != nil {
		return nil, err
	}
	if len(t.Clusters()) > 1 {
		if err := q.needInterCluster("--topology " + q.topology); err != nil {
			return nil, err
		}
	}
	if q.overHosts() {
		return func(_ int, host string, at []netip.Addr) (string, error) { return t.Cluster(host, at) }, nil
	}
	// The peers will be started on this host.
	here, err := clusterHere(t)
	return func(int, string, []netip.Addr) (string, error) { return here, nil }, err
}

func readTopology(file string) (*topology.Topology, error) {
	t, err := topology.Read(file)
	if err != nil {
		return nil, usage("--topology: %w", err)
	}
	return t, nil
}

func clusterHere(t *topology.Topology) (string, error) {
	host, _ := os.Hostname()
	cluster, err := t.Cluster(host, driver.Addresses(""))
	if err != nil {
		return "", usage("--topology: %w", err)
	}
	return cluster, nil
}

// possibleClusters returns as many labels as the run may have clusters. The hosts of peers that are started by hand
// are unknown, so --topology allows as many as the file has.
func (q *request) possibleClusters() ([]string, error) {
	n := q.clusters
	if q.topology != "" {
		if n = 1; q.overHosts() {
			t, err := readTopology(q.topology)
			if err != nil {
				return nil, err
			}
			n = len(t.Clusters())
		}
	}
	var out []string
	for i := range max(n, 0) {
		out = append(out, strconv.Itoa(i))
	}
	return out, nil
}

// schemeAmong returns the scheme of the peers, for the given number of clusters.
func (q *request) schemeAmong(p problem.Partition, clusters int) (iterate.Scheme, error) {
	labels := make([]string, p.Peers())
	for r, c := range problem.Clusters(p, clusters) {
		labels[r] = strconv.Itoa(c)
	}
	return q.catalog.Scheme(q.Scheme, labels)
}

// needInterCluster returns an error if the catalog lacks micro-protocols of sessions between clusters.
func (q *request) needInterCluster(flag string) error {
	var missing []string
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		c, err := p2psap.TablePolicy{}.Compose(p2psap.Conditions{
			Mode: mode, Locality: p2psap.OtherCluster, Network: p2psap.Ethernet,
		})
		if err != nil {
			return failed(err)
		}
		for _, name := range c.Protocols {
			if !q.catalog.Protocols.Has(name) && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	if missing != nil {
		return usage("%s: sessions between clusters need %s, which the catalog lacks", flag,
			strings.Join(missing, ", "))
	}
	return nil
}
