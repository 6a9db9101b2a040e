package ib

import (
	"cmp"
	"io/fs"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Port is a port of an RDMA adapter, as the kernel describes it under /sys.
type Port struct {
	Device   string  `json:"name"`
	Number   int     `json:"port"`       // from 1
	State    string  `json:"state"`      // of the logical link: "ACTIVE", "DOWN", …
	Physical string  `json:"physical"`   // "LinkUp", "Polling", "Disabled", …
	Layer    string  `json:"link_layer"` // "InfiniBand" or "Ethernet" (RoCE)
	Rate     string  `json:"rate"`       // "100 Gb/sec (4X EDR)"
	Gigabits float64 `json:"gigabits"`   // the same as a number; 0 if unknown
	LID      uint16  `json:"lid"`        // InfiniBand only

	// Netdevs are the network interfaces that share the port.
	Netdevs []string `json:"netdevs"`
	// Identifiers are the non-empty entries of the port's GID table.
	Identifiers []Identifier `json:"gids"`
	// Nodes are the adapter's character devices, such as "/dev/infiniband/uverbs0".
	Nodes    []string `json:"character_devices"`
	Type     string   `json:"node_type"` // "CA", or "RNIC" for iWARP
	Firmware string   `json:"firmware"`
	// Undriven is set if libibverbs does not list the adapter.
	Undriven bool `json:"undriven,omitempty"`
}

// Identifier is an entry of a port's GID table.
type Identifier struct {
	Index   int        `json:"index"`
	Address netip.Addr `json:"address"`
	Kind    string     `json:"kind"` // "IB/RoCE v1", "RoCE v2"
	Netdev  string     `json:"netdev,omitempty"`
}

// Usable returns "" if a link can be opened on the port, or the reason why not.
func (p *Port) Usable() string {
	switch {
	case p.Type == "RNIC":
		return "an iWARP adapter has no unreliable connected pairs"
	case p.State == "":
		return "its state is unknown"
	case p.State != "ACTIVE":
		return "the link is " + p.State
	case !slices.ContainsFunc(p.Nodes, isVerbsNode):
		return "it has no character device: load ib_uverbs"
	case p.Undriven:
		return "libibverbs has no driver for it: install ibverbs-providers, or rdma-core"
	}
	return ""
}

// isVerbsNode reports whether a program opens the adapter through that character device.
func isVerbsNode(name string) bool { return strings.HasPrefix(path.Base(name), "uverbs") }

// adapter is an RDMA device before its ports are read.
type adapter struct {
	name       string
	nodes      []string       // character devices
	ipoibPorts map[string]int // port numbers by IPoIB interface
}

// readPorts reads the ports of adapters from a sysfs, ordered by device name and port number.
// Attributes that cannot be read stay empty: a device may be removed at any time.
func readPorts(sys fs.FS, adapters []adapter) []Port {
	var out []Port
	for _, a := range adapters {
		at := path.Join("class/infiniband", a.name)
		entries, err := fs.ReadDir(sys, path.Join(at, "ports"))
		if err != nil {
			continue
		}
		for _, e := range entries {
			number, err := strconv.Atoi(e.Name())
			if err != nil || number < 1 || number > 255 {
				continue
			}
			p := readPort(sys, path.Join(at, "ports", e.Name()))
			p.Device, p.Number = a.name, number
			p.Nodes = append([]string{}, a.nodes...)
			p.Type, p.Firmware = textAfterColon(firstLine(sys, at+"/node_type")), firstLine(sys, at+"/fw_ver")
			for name, port := range a.ipoibPorts {
				if port == number && !slices.Contains(p.Netdevs, name) {
					p.Netdevs = append(p.Netdevs, name)
				}
			}
			slices.Sort(p.Netdevs)
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b Port) int { return cmp.Or(strings.Compare(a.Device, b.Device), a.Number-b.Number) }

func readPort(sys fs.FS, at string) Port {
	p := Port{
		State: textAfterColon(firstLine(sys, at+"/state")), Physical: textAfterColon(firstLine(sys, at+"/phys_state")),
		Layer: firstLine(sys, at+"/link_layer"), Rate: firstLine(sys, at+"/rate"),
		Netdevs: []string{}, Identifiers: []Identifier{},
	}
	p.Gigabits = gigabits(p.Rate)
	if lid, err := strconv.ParseUint(strings.TrimPrefix(firstLine(sys, at+"/lid"), "0x"), 16, 16); err == nil {
		p.LID = uint16(lid)
	}
	entries, err := fs.ReadDir(sys, at+"/gids")
	if err != nil {
		return p
	}
	for _, e := range entries {
		index, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		address, err := netip.ParseAddr(firstLine(sys, at+"/gids/"+e.Name()))
		if err != nil || address.IsUnspecified() {
			continue
		}
		id := Identifier{
			Index: index, Address: address.Unmap(),
			Kind:   firstLine(sys, at+"/gid_attrs/types/"+e.Name()),
			Netdev: firstLine(sys, at+"/gid_attrs/ndevs/"+e.Name()),
		}
		p.Identifiers = append(p.Identifiers, id)
		if id.Netdev != "" && !slices.Contains(p.Netdevs, id.Netdev) {
			p.Netdevs = append(p.Netdevs, id.Netdev)
		}
	}
	slices.SortFunc(p.Identifiers, func(a, b Identifier) int { return a.Index - b.Index })
	return p
}

// firstLine returns the first line of a small file, or "" if it cannot be read. Most
// attributes of an empty GID entry cannot be read.
func firstLine(sys fs.FS, name string) string {
	b, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// textAfterColon returns the name in an attribute such as "4: ACTIVE".
func textAfterColon(s string) string {
	if _, name, found := strings.Cut(s, ": "); found {
		return name
	}
	return s
}

// gigabits parses a rate such as "2.5 Gb/sec (1X SDR)"; it returns 0 for other text.
func gigabits(rate string) float64 {
	number, unit, _ := strings.Cut(rate, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(unit, "Gb/sec") || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return v
}
