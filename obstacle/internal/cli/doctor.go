package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/spf13/cobra"
)

// diagnosis is what doctor prints.
type diagnosis struct {
	Version   string                    `json:"version"`
	Toolchain string                    `json:"toolchain"`
	Host      string                    `json:"host"`
	CPU       string                    `json:"cpu"`
	CPUs      int                       `json:"cpus"`    // that this process may use
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
	Choices   []pick                    `json:"choices"`
	Advice    []string                  `json:"advice"`
}

type variant struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

type shared struct {
	Path      string         `json:"path"`
	FreeBytes nullable.Count `json:"free_bytes"` // null: it is not there
}

// pick is what a solve would take by default.
type pick struct {
	What  string `json:"what"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

func (a *app) doctorCommand() *cobra.Command {
	var peer, topologyFile string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this host offers, what would be chosen, and why",
		Long: `doctor looks at processors, RDMA devices and the library for them, UDP offloads,
shared memory and limits, and at the network interfaces: where a peer would be found to be that is
reached over them. It changes nothing; it sends a few datagrams to itself over
loopback. With --peer it opens a few TCP connections to that place, to tell how
far it is (a port where nobody listens will do), and with --topology it tells in
which cluster of the file this host is.`,
		Example: "  obstacle doctor --format json",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			d := diagnose()
			if topologyFile != "" {
				if d.Cluster, err = clusterHere(topologyFile); err != nil {
					return err
				}
			}
			if peer != "" {
				if d.Distance, err = distanceTo(c.Context(), peer); err != nil {
					return err
				}
			}
			return a.print(d, d.text)
		},
	}
	c.Flags().StringVar(&peer, "peer", "", "HOST:PORT: measure how far it is, and say in which cluster that would be")
	c.Flags().StringVar(&topologyFile, "topology", "", "topology file: say in which of its clusters this host is")
	return c
}

func diagnose() diagnosis {
	name, _ := os.Hostname()
	d := diagnosis{
		Version: build.Version(), Toolchain: build.Toolchain(), Host: name,
		CPU: host.CPU(), CPUs: runtime.GOMAXPROCS(0),
		UDP: ether.Probe(), Paths: paths(), Limits: append([]host.Limit{}, host.Limits()...),
		Shared: shared{"/dev/shm", nullable.Count(host.Free("/dev/shm"))},
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

func (d *diagnosis) choose() []pick {
	network := pick{"network", rail.Ether, "UDP; InfiniBand is not used: " + d.Verbs.without()}
	if c := d.Verbs.Choice; c != nil {
		network = pick{"network", rail.IB, c.Why + "; with peers that it does not reach, and when it goes down, UDP"}
	}
	best := d.Kernels[len(d.Kernels)-1]
	peers, threads, why := defaultWorkers(problem.Richardson, true, 64*64*64, d.CPUs)
	offload := pick{"frames", "one per datagram", "no segmentation offload here"}
	if d.UDP.GSO && d.UDP.GRO {
		offload = pick{"frames", "many per datagram", "the kernel segments and joins datagrams (GSO, GRO), as tried over loopback"}
	}
	return []pick{
		network, offload,
		{"kernel", best.Name, best.About},
		{"peers, threads (64³)", fmt.Sprintf("%d, %d", peers, threads), why},
	}
}

func (d *diagnosis) text(w io.Writer) {
	table(w, func(w io.Writer) {
		fmt.Fprintf(w, "program\tobstacle %s, %s\n", d.Version, d.Toolchain)
		fmt.Fprintf(w, "host\t%s\n", d.Host)
		fmt.Fprintf(w, "processors\t%d × %s\n", d.CPUs, d.CPU)
		for _, k := range d.Kernels {
			fmt.Fprintf(w, "kernel\t%s: %s\n", k.Name, k.About)
		}
		d.Verbs.text(w, d.RDMA)
		u := d.UDP
		fmt.Fprintf(w, "UDP\tIPv4 %s, IPv6 %s, sendmmsg %s, GSO %s, GRO %s\n", yes(u.IPv4), yes(u.IPv6), yes(u.Batch), yes(u.GSO), yes(u.GRO))
		fmt.Fprintf(w, "UDP queues\tin %s, out %s; largest frame over loopback %d bytes\n", bytesText(int64(u.QueueIn)), bytesText(int64(u.QueueOut)), u.LoopbackFrame)
		pathsText(w, d.Paths)
		if d.Cluster != "" {
			fmt.Fprintf(w, "cluster\t%s, by the topology file\n", d.Cluster)
		}
		if x := d.Distance; x != nil {
			fmt.Fprintf(w, "peer %s\t%s: %s\n", x.Peer, x.Locality, x.Why)
		}
		if d.Shared.FreeBytes >= 0 {
			fmt.Fprintf(w, "shared memory\t%s, %s free\n", d.Shared.Path, bytesText(int64(d.Shared.FreeBytes)))
		} else {
			fmt.Fprintf(w, "shared memory\tnone at %s\n", d.Shared.Path)
		}
		for _, l := range d.Limits {
			fmt.Fprintf(w, "limit %s\t%s (%s)\n", l.Name, bound(l.Soft), l.What)
		}
		for _, s := range sortedKeys(d.Sysctl) {
			fmt.Fprintf(w, "sysctl %s\t%s\n", s, strings.Replace(bound(int64(d.Sysctl[s])), "none", "not known", 1))
		}
		for _, c := range d.Choices {
			fmt.Fprintf(w, "chosen: %s\t%s: %s\n", c.What, c.Value, c.Why)
		}
		for _, s := range d.Advice {
			fmt.Fprintf(w, "advice\t%s\n", s)
		}
	})
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

// bytesText writes a number of bytes with a binary unit.
func bytesText(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1024 || unit == "GiB" {
			if unit == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1024
	}
	return ""
}
