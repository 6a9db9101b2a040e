package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// diagnosis is the JSON of doctor.
type diagnosis struct {
	Version   string                    `json:"version"`
	Toolchain string                    `json:"toolchain"`
	Host      string                    `json:"host"`
	CPU       string                    `json:"cpu"`
	CPUs      int                       `json:"cpus"`    // available to this process
	Kernels   []variant                 `json:"kernels"` // slowest first
	RDMA      []ib.Port                 `json:"rdma"`
	Verbs     infiniband                `json:"infiniband"`
	UDP       ether.Offloads            `json:"udp"`
	Paths     []path                    `json:"interfaces"`
	Cluster   string                    `json:"cluster,omitempty"`  // by --topology
	Distance  *distance                 `json:"distance,omitempty"` // to --peer
	Shared    shared                    `json:"shared_memory"`
	Limits    []host.Limit              `json:"limits"`
	Sysctl    map[string]nullable.Count `json:"sysctl"`
	Choices   []decision                `json:"choices"`
	Advice    []string                  `json:"advice"`
	Hints     []hint                    `json:"hints,omitzero"` // of --fix-hints
}

type variant struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// shared describes the shared memory between peers of this host. It is anonymous; /dev/shm is what other programs use.
type shared struct {
	Path        string         `json:"path"`
	FreeBytes   nullable.Count `json:"free_bytes"`   // null if there is none
	Missing     string         `json:"missing"`      // why peers cannot share memory; "" if they can
	OutboxBytes int64          `json:"outbox_bytes"` // of a peer with default settings for each neighbour
}

func sharedHere() shared {
	s := shared{Path: "/dev/shm", FreeBytes: nullable.Count(host.Free("/dev/shm"))}
	if err := shm.Usable(); err != nil {
		s.Missing = err.Error()
	}
	s.OutboxBytes, _ = (&rail.Host{}).OutboxBytes(rendezvous.Rails{}) // the default settings are valid
	return s
}

func (s *shared) text(w io.Writer) {
	if s.Missing != "" {
		fmt.Fprintf(w, "shared memory\tnot usable: %s\n", s.Missing)
	} else {
		fmt.Fprintf(w, "shared memory\tusable; a peer has %s for each neighbour on its host\n", bytesText(s.OutboxBytes))
	}
	if s.FreeBytes >= 0 {
		fmt.Fprintf(w, "\t%s: %s free\n", s.Path, bytesText(int64(s.FreeBytes)))
	}
}

// decision is a default of solve on this host.
type decision struct {
	What  string `json:"what"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

func (a *app) doctorCommand() *cobra.Command {
	var peer, topologyFile string
	var fixHints bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show the resources of this host and the defaults that follow",
		Long: `doctor shows processors, RDMA devices and their library, UDP offloads, shared memory,
limits, and the network interfaces with the locality of peers that are reached over
them. It changes nothing; it sends a few datagrams to itself over loopback. With
--peer it measures the round trip to an address by opening TCP connections, even to
a port where nothing listens. With --topology it shows the cluster of this host.`,
		Example: "  obstacle doctor --format json\n  obstacle doctor --fix-hints",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			d := diagnose()
			if topologyFile != "" {
				t, err := readTopology(topologyFile)
				if err != nil {
					return err
				}
				if d.Cluster, err = clusterHere(t); err != nil {
					return err
				}
			}
			if peer != "" {
				if d.Distance, err = distanceTo(c.Context(), peer); err != nil {
					return err
				}
			}
			if fixHints {
				t := d.tuningHere()
				d.Hints = t.hints()
			}
			return a.print(d, func(w io.Writer) {
				paint := a.painter(a.out)
				d.text(w, paint)
				if fixHints {
					hintsText(w, d.Hints, paint)
				}
			})
		},
	}
	c.Flags().StringVar(&peer, "peer", "", "HOST:PORT: measure the round trip, and show the cluster that it implies")
	c.Flags().BoolVar(&fixHints, "fix-hints", false,
		"show the commands that change settings that cost speed; nothing is changed")
	c.Flags().StringVar(&topologyFile, "topology", "", "topology file: show the cluster of this host")
	return c
}

func diagnose() diagnosis {
	name, _ := os.Hostname()
	d := diagnosis{
		Version: build.Version(), Toolchain: build.Toolchain(), Host: name,
		CPU: host.CPU(), CPUs: runtime.GOMAXPROCS(0),
		UDP: ether.Probe(), Paths: paths(), Limits: append([]host.Limit{}, host.Limits()...),
		Shared: sharedHere(),
		Sysctl: map[string]nullable.Count{}, Advice: []string{},
	}
	d.RDMA, d.Verbs = infiniBandHere()
	for _, k := range kernel.All() {
		d.Kernels = append(d.Kernels, variant{k.Name(), k.Description()})
	}
	for _, s := range []string{"net/core/rmem_max", "net/core/wmem_max"} {
		d.Sysctl[s] = nullable.Count(host.Sysctl(s))
	}
	if d.UDP.Advice != "" {
		d.Advice = append(d.Advice, d.UDP.Problem+": "+d.UDP.Advice)
	}
	d.Choices = d.choose()
	return d
}

// betweenHosts returns the network to peers of other hosts.
func betweenHosts(v *infiniband) decision {
	if c := v.Choice; c != nil {
		return decision{"network", rail.IB, c.Why + "; UDP for peers that it does not reach, and while it is down"}
	}
	return decision{"network", rail.Ether, "UDP; InfiniBand is not used: " + v.without()}
}

// localNetwork returns the network to peers of this host. missing is why shared memory is not usable, or "".
func localNetwork(missing string, otherwise decision) decision {
	if missing != "" {
		return decision{"network to peers of this host", otherwise.Value, "shared memory is not usable: " + missing}
	}
	return decision{"network to peers of this host", rail.Shared, "shared memory"}
}

func (d *diagnosis) choose() []decision {
	network := betweenHosts(&d.Verbs)
	here := localNetwork(d.Shared.Missing, network)
	best := d.Kernels[len(d.Kernels)-1]
	peers, threads, why := defaultWorkers(problem.Multigrid, false, 64*64*64, d.CPUs)
	offload := decision{"frames", "one per datagram", "no segmentation offload"}
	if d.UDP.GSO && d.UDP.GRO {
		offload = decision{"frames", "many per datagram",
			"the kernel splits and joins datagrams (GSO, GRO), as tested over loopback"}
	}
	return []decision{
		network, here, offload,
		{"kernel", best.Name, best.About},
		{"peers, threads (64³)", fmt.Sprintf("%d, %d", peers, threads), why},
	}
}

func (d *diagnosis) text(w io.Writer, paint painter) {
	t := report.Tabs(w)
	fmt.Fprintf(t, "program\tobstacle %s, %s\n", d.Version, d.Toolchain)
	fmt.Fprintf(t, "host\t%s\n", d.Host)
	fmt.Fprintf(t, "processors\t%d × %s\n", d.CPUs, d.CPU)
	for _, k := range d.Kernels {
		fmt.Fprintf(t, "kernel\t%s: %s\n", k.Name, k.About)
	}
	d.Verbs.text(t, d.RDMA)
	u := d.UDP
	fmt.Fprintf(t, "UDP\tIPv4 %s, IPv6 %s, sendmmsg %s, GSO %s, GRO %s\n",
		yes(u.IPv4), yes(u.IPv6), yes(u.Batch), yes(u.GSO), yes(u.GRO))
	fmt.Fprintf(t, "UDP queues\tin %s, out %s; largest frame over loopback %d bytes\n",
		bytesText(int64(u.QueueIn)), bytesText(int64(u.QueueOut)), u.LoopbackFrame)
	pathsText(t, d.Paths)
	if d.Cluster != "" {
		fmt.Fprintf(t, "cluster\t%s, by the topology file\n", d.Cluster)
	}
	if x := d.Distance; x != nil {
		fmt.Fprintf(t, "peer %s\t%s: %s\n", x.Peer, x.Locality, x.Why)
	}
	d.Shared.text(t)
	for _, l := range d.Limits {
		fmt.Fprintf(t, "limit %s\t%s (%s)\n", l.Name, bound(l.Soft), l.What)
	}
	for _, s := range slices.Sorted(maps.Keys(d.Sysctl)) {
		fmt.Fprintf(t, "sysctl %s\t%s\n", s, strings.Replace(bound(int64(d.Sysctl[s])), "none", "unknown", 1))
	}
	for _, c := range d.Choices {
		fmt.Fprintf(t, "chosen: %s\t%s: %s\n", c.What, paint(green, c.Value), c.Why)
	}
	for _, s := range d.Advice {
		fmt.Fprintf(t, "advice\t%s\n", paint(yellow, s))
	}
	t.Flush()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func bound(v int64) string {
	if v < 0 {
		return "none"
	}
	return fmt.Sprint(v)
}

// bytesText formats a number of bytes with a binary unit.
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1024, []string{"KiB", "MiB", "GiB"}
	for ; v >= 1024 && len(units) > 1; units = units[1:] {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}
