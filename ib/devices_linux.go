package ib

import (
	"io/fs"
	"net"
	"slices"
	"strconv"

	"github.com/Mellanox/rdmamap"
)

// adapters returns the RDMA adapters of this host, with their character devices and IPoIB
// interfaces. The interfaces of Ethernet ports are named in the GID tables.
func adapters(sys fs.FS) []adapter {
	names := rdmamap.GetRdmaDeviceList()
	slices.Sort(names)
	out := make([]adapter, 0, len(names))
	for _, name := range names {
		nodes := rdmamap.GetRdmaCharDevices(name)
		slices.Sort(nodes)
		out = append(out, adapter{name: name, nodes: nodes, ipoibPorts: map[string]int{}})
	}
	if len(out) == 0 {
		return out
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return out
	}
	for _, i := range interfaces {
		if firstLine(sys, "class/net/"+i.Name+"/type") != arpInfiniBand {
			continue
		}
		device, err := rdmamap.GetRdmaDeviceForNetdevice(i.Name)
		if err != nil || device == "" {
			continue
		}
		port, err := strconv.Atoi(firstLine(sys, "class/net/"+i.Name+"/dev_port"))
		if err != nil {
			continue
		}
		for _, a := range out {
			if a.name == device {
				a.ipoibPorts[i.Name] = port + 1
			}
		}
	}
	return out
}

// arpInfiniBand is the hardware type of an IPoIB interface (ARPHRD_INFINIBAND).
const arpInfiniBand = "32"
