package ib

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/libibverbs"
)

// Context describes what a host offers to a link.
type Context struct {
	Kernel  bool      `json:"kernel"`  // RDMA drivers are loaded
	Library string    `json:"library"` // why libibverbs cannot be used, or ""
	Ports   []Port    `json:"ports"`   // of all adapters, by name and number
	Lock    LockLimit `json:"memory_lock"`
}

// LockLimit is the limit on the memory that a process may pin, such as registered buffers.
type LockLimit struct {
	Bytes  int64 `json:"bytes"`  // RLIMIT_MEMLOCK; -1: unlimited
	Exempt bool  `json:"exempt"` // the process may pin more (CAP_IPC_LOCK)
}

// Allows reports whether n bytes may be pinned.
func (l LockLimit) Allows(n int64) bool { return l.Exempt || l.Bytes < 0 || n <= l.Bytes }

// Look describes this host. It reads /sys and loads libibverbs, and opens no device.
func Look() Context {
	sys := os.DirFS("/sys")
	driven, err := libibverbs.New().Devices()
	return describeHost(sys, adapters(sys), driven, err, lockLimit())
}

// Present reports whether this host has RDMA drivers, without loading libibverbs.
func Present() bool {
	_, err := os.Stat("/sys/class/infiniband")
	return err == nil
}

// describeHost combines the adapters that the kernel shows with the devices that libibverbs
// lists, or its error. The result depends on the arguments only.
func describeHost(sys fs.FS, found []adapter, driven []string, library error, lock LockLimit) Context {
	_, err := fs.Stat(sys, "class/infiniband")
	c := Context{Kernel: err == nil, Ports: readPorts(sys, found), Lock: lock}
	if library != nil && !errors.Is(library, verbs.ErrNoKernel) {
		c.Library = library.Error()
	}
	if c.Ports == nil {
		c.Ports = []Port{}
	}
	for i := range c.Ports {
		c.Ports[i].Undriven = library == nil && !slices.Contains(driven, c.Ports[i].Device)
	}
	return c
}

// Want describes the port that a link needs.
type Want struct {
	Device string // "": any
	Port   int    // 0: any
	GID    string // an entry of the port's GID table, as an IPv6 address; "": the best one
	Bytes  int64  // that the link registers
}

// Choice is a port to open a link on.
type Choice struct {
	Port Port       `json:"port"`
	GID  Identifier `json:"gid"` // to use; an InfiniBand port may show none
	Why  string     `json:"why"`
}

// MissingError lists everything that prevents a host from opening a link.
type MissingError struct{ Missing []Missing }

// Missing is one obstacle and its remedy.
type Missing struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// Error implements error.
func (e *MissingError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		parts[i] = m.What + " (" + m.Remedy + ")"
	}
	return strings.Join(parts, "; ")
}

// Choose selects the port for a link: the fastest of the wanted and usable ports. Among
// equals InfiniBand comes before Ethernet, then the first by name. The error is a
// *MissingError.
func (c *Context) Choose(w Want) (Choice, error) {
	choice, missing := c.port(w)
	if c.Library != "" {
		missing = append(missing, Missing{"libibverbs cannot be used", c.Library})
	}
	if !c.Lock.Allows(w.Bytes) {
		needed := fmt.Sprintf("%d KiB", (w.Bytes+1023)>>10) // the unit of ulimit
		missing = append(missing, Missing{
			fmt.Sprintf("the limit on locked memory, %d KiB (ulimit -l, RLIMIT_MEMLOCK), is below the %s "+
				"that the link registers", c.Lock.Bytes>>10, needed),
			fmt.Sprintf("raise it to %s or more, in /etc/security/limits.conf or by LimitMEMLOCK= of a service, "+
				"or register less with --ib-blocks or --ib-block-bytes", needed),
		})
	}
	if missing != nil {
		return Choice{}, &MissingError{missing}
	}
	return choice, nil
}

// NoKernel is the obstacle where Present returns false.
const NoKernel = "the kernel has no RDMA: there is no /sys/class/infiniband"

func (c *Context) port(w Want) (Choice, []Missing) {
	if !c.Kernel {
		return Choice{}, []Missing{{NoKernel,
			"load the driver of your adapter and ib_uverbs; without an adapter rdma_rxe makes one of an Ethernet interface"}}
	}
	if len(c.Ports) == 0 {
		return Choice{}, []Missing{{"there is no RDMA device",
			"rdma link add rxe0 type rxe netdev eth0 makes one of an Ethernet interface"}}
	}
	wanted := slices.DeleteFunc(slices.Clone(c.Ports), func(p Port) bool {
		return w.Device != "" && p.Device != w.Device || w.Port != 0 && p.Number != w.Port
	})
	if len(wanted) == 0 {
		what := fmt.Sprintf("there is no RDMA device %q", w.Device)
		switch {
		case w.Device == "":
			what = fmt.Sprintf("no RDMA device has a port %d", w.Port)
		case slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Device == w.Device }):
			what = fmt.Sprintf("the RDMA device %s has no port %d", w.Device, w.Port)
		}
		return Choice{}, []Missing{{what, "there are " + c.names()}}
	}
	usable := slices.DeleteFunc(slices.Clone(wanted), func(p Port) bool { return p.Usable() != "" })
	if len(usable) == 0 {
		var reasons []string
		for _, p := range wanted {
			reasons = append(reasons, fmt.Sprintf("%s port %d: %s", p.Device, p.Number, p.Usable()))
		}
		return Choice{}, []Missing{{"no RDMA port can be used", strings.Join(reasons, ", ")}}
	}
	best := slices.MinFunc(usable, better)
	gid, missing := best.identifier(w.GID)
	if missing != nil {
		return Choice{}, missing
	}
	return Choice{Port: best, GID: gid, Why: reason(best, usable, wanted)}, nil
}

// better orders ports, the best first.
func better(a, b Port) int {
	layer := strings.Compare(b.Layer, a.Layer) // InfiniBand comes after Ethernet
	return cmp.Or(cmp.Compare(b.Gigabits, a.Gigabits), layer, byName(a, b))
}

// Values of attributes in /sys.
const (
	layerInfiniBand = "InfiniBand"
	kindRoCEv2      = "RoCE v2"
)

// identifier returns the GID to use: the wanted one or the best. InfiniBand routes by LID, and
// its port's own GID is entry 0.
func (p *Port) identifier(wanted string) (Identifier, []Missing) {
	among := p.Identifiers
	if wanted != "" {
		address, err := netip.ParseAddr(wanted)
		among = slices.DeleteFunc(slices.Clone(among), func(i Identifier) bool {
			return err != nil || i.Address != address.Unmap()
		})
		if len(among) == 0 {
			return Identifier{}, []Missing{{
				fmt.Sprintf("no GID %s at %s port %d", wanted, p.Device, p.Number), "there are " + p.addresses(),
			}}
		}
	}
	switch {
	case len(among) == 0 && p.Layer == layerInfiniBand:
		return Identifier{}, nil
	case len(among) == 0:
		return Identifier{}, []Missing{{
			fmt.Sprintf("%s port %d has no GID", p.Device, p.Number),
			"assign an address to its network interface, and wait a moment",
		}}
	case p.Layer == layerInfiniBand:
		return among[0], nil
	}
	rank := func(i Identifier) int { return gidRank(i.Kind == kindRoCEv2, i.Address) }
	return slices.MaxFunc(among, func(a, b Identifier) int { return rank(a) - rank(b) }), nil
}

// addresses lists the distinct GIDs of a port.
func (p *Port) addresses() string {
	var out []string
	for _, i := range p.Identifiers {
		if s := i.Address.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// reason explains the choice of a port.
func reason(best Port, usable, wanted []Port) string {
	text := fmt.Sprintf("%s port %d is active", best.Device, best.Number)
	if best.Rate != "" {
		text += ", " + best.Rate
	}
	switch {
	case len(wanted) == 1:
		return text
	case len(usable) == 1:
		return text + fmt.Sprintf("; the other ports, %d, cannot be used", len(wanted)-1)
	}
	return text + fmt.Sprintf("; the best of %d that can be used", len(usable))
}

// names lists the devices with their ports.
func (c *Context) names() string {
	var out []string
	for _, p := range c.Ports {
		out = append(out, fmt.Sprintf("%s port %d", p.Device, p.Number))
	}
	return strings.Join(out, ", ")
}
