package ib

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Context is what a host offers to a link of this package: it tells what is there and
// opens nothing.
type Context struct {
	Kernel  bool      `json:"kernel"`  // RDMA drivers are loaded
	Library string    `json:"library"` // why libibverbs cannot be used; empty: it can
	Ports   []Port    `json:"ports"`   // of all adapters, by name and number
	Lock    LockLimit `json:"memory_lock"`
}

// LockLimit bounds the memory that a process may pin, as registered buffers are.
type LockLimit struct {
	Bytes  int64 `json:"bytes"`  // RLIMIT_MEMLOCK; -1: none
	Exempt bool  `json:"exempt"` // the process may pin more (CAP_IPC_LOCK)
}

// Allows tells whether n bytes may be pinned.
func (l LockLimit) Allows(n int64) bool { return l.Exempt || l.Bytes < 0 || n <= l.Bytes }

// Look finds out what this host offers. It reads /sys and loads libibverbs; it opens no
// device.
func Look() Context {
	sys := os.DirFS("/sys")
	var driven []string
	library, err := hostProvider()
	if err == nil {
		driven, err = library.Devices()
	}
	return describeHost(sys, adapters(sys), driven, err, lockLimit())
}

// libraryProblem tells why the library cannot be used, from what its listing says;
// empty: it can. That the kernel has no RDMA is no fault of the library's.
func libraryProblem(err error) string {
	if err == nil || errors.Is(err, verbs.ErrNoKernel) {
		return ""
	}
	return err.Error()
}

// Present tells whether this host has RDMA drivers at all, for those who would rather
// not load a library to learn that it hasn't.
func Present() bool {
	_, err := os.Stat("/sys/class/infiniband")
	return err == nil
}

// survey puts together what is known of a host: the devices that the kernel shows, and
// those that libibverbs lists, or its error. It depends on its arguments only.
func describeHost(sys fs.FS, found []adapter, driven []string, library error, lock LockLimit) Context {
	_, err := fs.Stat(sys, "class/infiniband")
	c := Context{Kernel: err == nil, Library: libraryProblem(library), Ports: readPorts(sys, found), Lock: lock}
	if c.Ports == nil {
		c.Ports = []Port{}
	}
	for i := range c.Ports {
		c.Ports[i].Undriven = library == nil && !slices.Contains(driven, c.Ports[i].Device)
	}
	return c
}

// Want says what a link is to be opened on.
type Want struct {
	Device string // "": any
	Port   int    // 0: any
	GID    string // an entry of the port's table, as an IPv6 address; "": the best of them
	Bytes  int64  // that it will register
}

// Choice is a port to open a link on.
type Choice struct {
	Port Port       `json:"port"`
	GID  Identifier `json:"gid"` // to use; on InfiniBand a port may show none
	Why  string     `json:"why"`
}

// MissingError tells all that stands between a host and a link.
type MissingError struct{ Missing []Missing }

// Missing is one thing that is not there, and what to do about it.
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

// Choose finds the port for a link: of those that are wanted and usable the fastest;
// of equals InfiniBand before Ethernet, then the first by name. The error is a
// *MissingError.
func (c *Context) Choose(w Want) (Choice, error) {
	var missing []Missing
	choice, lacking := c.port(w)
	missing = append(missing, lacking...)
	if c.Library != "" {
		missing = append(missing, Missing{"libibverbs cannot be used", c.Library})
	}
	if !c.Lock.Allows(w.Bytes) {
		missing = append(missing, Missing{
			fmt.Sprintf("the limit on locked memory, %d KiB (ulimit -l, RLIMIT_MEMLOCK), is below the %s that the link registers", c.Lock.Bytes>>10, kibibytes(w.Bytes)),
			fmt.Sprintf("raise it to %s or more, in /etc/security/limits.conf or by LimitMEMLOCK= of a service, or register less with --ib-blocks or --ib-block-bytes", kibibytes(w.Bytes)),
		})
	}
	if missing != nil {
		return Choice{}, &MissingError{missing}
	}
	return choice, nil
}

// kibibytes writes a size in the unit of ulimit, rounded up.
func kibibytes(n int64) string { return fmt.Sprintf("%d KiB", (n+1023)>>10) }

// NoKernel says that Present is false.
const NoKernel = "the kernel has no RDMA: there is no /sys/class/infiniband"

func (c *Context) port(w Want) (Choice, []Missing) {
	if !c.Kernel {
		return Choice{}, []Missing{{NoKernel, "load the driver of your adapter and ib_uverbs; without an adapter rdma_rxe makes one of an Ethernet interface"}}
	}
	if len(c.Ports) == 0 {
		return Choice{}, []Missing{{"there is no RDMA device", "rdma link add rxe0 type rxe netdev eth0 makes one of an Ethernet interface"}}
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
		var why []string
		for _, p := range wanted {
			why = append(why, fmt.Sprintf("%s port %d: %s", p.Device, p.Number, p.Usable()))
		}
		return Choice{}, []Missing{{"no RDMA port can be used", strings.Join(why, ", ")}}
	}
	best := slices.MinFunc(usable, better)
	gid, lacking := best.identifier(w.GID)
	if lacking != nil {
		return Choice{}, lacking
	}
	return Choice{Port: best, GID: gid, Why: why(best, usable, wanted)}, nil
}

// better orders ports, the best first.
func better(a, b Port) int {
	switch {
	case a.Gigabits > b.Gigabits:
		return -1
	case a.Gigabits < b.Gigabits:
		return 1
	case a.Layer != b.Layer && a.Layer == layerInfiniBand:
		return -1
	case a.Layer != b.Layer && b.Layer == layerInfiniBand:
		return 1
	}
	return byName(a, b)
}

// Words of the kernel.
const (
	layerInfiniBand = "InfiniBand"
	kindRoCEv2      = "RoCE v2"
)

// identifier is the entry of the table of GIDs to use. InfiniBand routes by LID and
// has its port's own at 0; on Ethernet version 2 goes before 1, which routers do not
// carry, and an address of the network before a link-local one.
func (p *Port) identifier(wanted string) (Identifier, []Missing) {
	among := p.Identifiers
	if wanted != "" {
		address, err := netip.ParseAddr(wanted)
		among = slices.DeleteFunc(slices.Clone(among), func(i Identifier) bool { return err != nil || i.Address != address.Unmap() })
		if len(among) == 0 {
			return Identifier{}, []Missing{{fmt.Sprintf("no GID %s at %s port %d", wanted, p.Device, p.Number), "there are " + p.addresses()}}
		}
	}
	switch {
	case len(among) == 0 && p.Layer == layerInfiniBand:
		return Identifier{}, nil
	case len(among) == 0:
		return Identifier{}, []Missing{{fmt.Sprintf("%s port %d has no GID", p.Device, p.Number), "give its network interface an address, and wait a moment"}}
	case p.Layer == layerInfiniBand:
		return among[0], nil
	}
	rank := func(i Identifier) int {
		r := 0
		if i.Kind != kindRoCEv2 {
			r += 2
		}
		if i.Address.IsLinkLocalUnicast() {
			r++
		}
		return r
	}
	return slices.MinFunc(among, func(a, b Identifier) int { return rank(a) - rank(b) }), nil
}

// addresses lists the GIDs of a port, each once.
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

func why(best Port, usable, wanted []Port) string {
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

// names lists the devices and their ports.
func (c *Context) names() string {
	var out []string
	for _, p := range c.Ports {
		out = append(out, fmt.Sprintf("%s port %d", p.Device, p.Number))
	}
	return strings.Join(out, ", ")
}
