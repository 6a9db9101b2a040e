package cli

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/internal/choice"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/topology"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// label decides who tells the peers' clusters: --clusters, --topology, or nobody (then
// they find out). It returns nil in the last case.
func (q *request) label(p problem.Partition) (launch.Label, error) {
	peers := p.Peers()
	switch {
	case q.clusters < 0:
		return nil, usage("--clusters %d: want 1 or more, or 0 to have it found out", q.clusters)
	case q.clusters > 0 && q.topology != "":
		return nil, usage("--clusters and --topology both say which peers form a cluster: give one of them")
	case q.clusters > peers:
		return nil, usage("--clusters %d of %d peers: every cluster has one at least", q.clusters, peers)
	case q.clusters > 0:
		if q.clusters > 1 {
			if err := q.between(fmt.Sprintf("--clusters %d", q.clusters)); err != nil {
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
	t, err := topology.Read(q.topology)
	if err != nil {
		return nil, badInput(fmt.Errorf("--topology: %w", err))
	}
	if len(t.Clusters()) > 1 {
		if err := q.between("--topology " + q.topology); err != nil {
			return nil, err
		}
	}
	if q.rendezvous != "" {
		return func(_ int, host string, at []netip.Addr) (string, error) { return t.Cluster(host, at) }, nil
	}
	// The peers will be started here.
	host, _ := os.Hostname()
	here, err := t.Cluster(host, driver.Addresses(""))
	if err != nil {
		return nil, badInput(fmt.Errorf("--topology: %w", err))
	}
	return func(int, string, []netip.Addr) (string, error) { return here, nil }, nil
}

// someClusters are labels of as many clusters as the peers of a run will form, by what
// flags say of them; of peers that are yet to come with --topology, which hosts they are on
// is not known, and there may be as many as the file has.
func (q *request) someClusters() ([]string, error) {
	n := q.clusters
	if q.topology != "" {
		if n = 1; q.rendezvous != "" {
			t, err := topology.Read(q.topology)
			if err != nil {
				return nil, badInput(fmt.Errorf("--topology: %w", err))
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

// fits refuses what the peers would refuse, and gives the scheme the peers' labels; of so
// many clusters they are.
func (q *request) fits(w *work, clusters int) error {
	labels := make([]string, w.peers)
	for r, c := range problem.Clusters(w.partition, clusters) {
		labels[r] = strconv.Itoa(c)
	}
	var err error
	if w.scheme, err = choice.Scheme(q.scheme, labels); err != nil {
		return err
	}
	c := problem.Config{
		Problem: w.problem, Partition: w.partition, Scheme: w.scheme, Order: w.order, Method: w.method,
		Tolerance: q.tol, MaxSweeps: iterate.Iteration(q.maxSweeps),
	}
	return solver.Check(c)
}

// between refuses channels between clusters when their micro-protocols are not all in
// the catalog.
func (q *request) between(flag string) error {
	var missing []string
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		c, err := p2psap.TablePolicy{}.Compose(p2psap.Conditions{Mode: mode, Locality: p2psap.OtherCluster, Network: p2psap.Ethernet})
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
		return usage("%s: channels between clusters need %s, which are not built in this release; there is one cluster", flag, strings.Join(missing, ", "))
	}
	return nil
}
