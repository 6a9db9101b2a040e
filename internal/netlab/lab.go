//go:build linux

package netlab

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Reporter is the interface of a lab's user: a testing.TB or a program that measures. Fatalf and Skipf do
// not return. The functions given to Cleanup run at the end in reverse order.
type Reporter interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Lab is the set of hosts of one test. It must not be used by several goroutines at once.
type Lab struct {
	tb    Reporter
	hosts []*Host
	links []*Link
	wires int
}

// Host is a network namespace with a loopback interface that is up.
type Host struct {
	Name   string
	ns     netns.NsHandle
	handle *netlink.Handle
	wires  int
}

// End is one end of a wire.
type End struct {
	Host       *Host
	Interface  string
	IPv4, IPv6 netip.Addr
}

// Wire describes a wire. The zero value has the MTU of Ethernet and an unbounded rate.
type Wire struct {
	MTU int // in bytes, 1500 if 0
	// Rate bounds each direction, in bytes per second; 0 means no bound. Queue bounds the bytes that wait for
	// transmission (64 KiB if 0); further packets are dropped.
	Rate, Queue int
}

// New returns an empty lab. If namespaces are not available, it skips the test and states the reason.
func New(tb Reporter) *Lab {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skipf("network namespaces need root")
	}
	l := &Lab{tb: tb}
	ns, err := newNamespace()
	if err == nil {
		err = ns.Close()
	}
	if err != nil {
		tb.Skipf("network namespaces are not available: %v", err)
	}
	tb.Cleanup(l.close)
	return l
}

// newNamespace makes a network namespace; the thread remains in its own.
func newNamespace() (netns.NsHandle, error) {
	runtime.LockOSThread()
	original, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return 0, err
	}
	defer original.Close()
	ns, err := netns.New()
	if err != nil {
		runtime.UnlockOSThread() // nothing has changed
		return 0, fmt.Errorf("unshare: %w", err)
	}
	if err := netns.Set(original); err != nil {
		return 0, err // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return ns, nil
}

// Host adds a host.
func (l *Lab) Host(name string) *Host {
	l.tb.Helper()
	ns, err := newNamespace()
	if err != nil {
		l.tb.Fatalf("netlab: host %s: %v", name, err)
	}
	h := &Host{Name: name, ns: ns}
	l.hosts = append(l.hosts, h)
	if h.handle, err = netlink.NewHandleAt(ns); err != nil {
		l.tb.Fatalf("netlab: host %s: %v", name, err)
	}
	if err := h.up("lo"); err != nil {
		l.tb.Fatalf("netlab: host %s: %v", name, err)
	}
	return h
}

func (h *Host) up(name string) error {
	link, err := h.handle.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	if err := h.handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("interface %s up: %w", name, err)
	}
	return nil
}

// Join connects two hosts by a wire. Its ends have the addresses 10.77.w.1 and .2 and fd77:w::1 and ::2,
// where w is the number of the wire in the lab.
func (l *Lab) Join(a, b *Host, w Wire) (endA, endB End) {
	l.tb.Helper()
	ends := l.ends(a, b)
	if err := createVeth(ends[0], ends[1], w); err != nil {
		l.tb.Fatalf("netlab: wire from %s to %s: %v", a.Name, b.Name, err)
	}
	return ends[0], ends[1]
}

// ends returns the two ends of a new wire, with interface names and addresses.
func (l *Lab) ends(a, b *Host) (ends [2]End) {
	l.wires++
	for i, h := range []*Host{a, b} {
		ends[i] = l.end(h, i)
	}
	return ends
}

// end returns an end of the newest wire or switch, with the name of its interface and the addresses of its place there.
func (l *Lab) end(h *Host, place int) End {
	e := End{
		Host: h, Interface: fmt.Sprintf("wire%d", h.wires),
		IPv4: netip.AddrFrom4([4]byte{10, 77, byte(l.wires), byte(place + 1)}),
		IPv6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(l.wires), 15: byte(place + 1)}),
	}
	h.wires++
	return e
}

func createVeth(a, b End, w Wire) error {
	if err := addVeth(a, b, w); err != nil {
		return err
	}
	for _, e := range []End{a, b} {
		if err := e.setAddresses(w); err != nil {
			return fmt.Errorf("on %s: %w", e.Host.Name, err)
		}
	}
	return nil
}

func addVeth(a, b End, w Wire) error {
	w.MTU = cmp.Or(w.MTU, 1500)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a.Interface, w.MTU
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: b.Interface, PeerMTU: uint32(w.MTU), PeerNamespace: netlink.NsFd(int(b.Host.ns)),
	}
	if err := a.Host.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	return nil
}

// Switch connects hosts by an Ethernet switch and returns their ends, which have the addresses 10.77.w.1, .2 … and
// fd77:w::1, ::2 …, where w counts with the wires of the lab.
func (l *Lab) Switch(hosts ...*Host) []End {
	l.tb.Helper()
	s := l.Host("switch")
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "bridge"
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := s.handle.LinkAdd(bridge); err != nil {
		l.tb.Fatalf("netlab: bridge: %v", err)
	}
	if err := s.up(attrs.Name); err != nil {
		l.tb.Fatalf("netlab: %v", err)
	}
	l.wires++
	out := make([]End, len(hosts))
	for i, h := range hosts {
		port := End{Host: s, Interface: fmt.Sprintf("port%d", i)}
		out[i] = l.end(h, i)
		if err := plug(port, out[i], bridge); err != nil {
			l.tb.Fatalf("netlab: wire of %s to the switch: %v", h.Name, err)
		}
	}
	return out
}

// plug connects an end to a port of a bridge.
func plug(port, end End, bridge *netlink.Bridge) error {
	if err := addVeth(port, end, Wire{}); err != nil {
		return err
	}
	if err := port.join(bridge); err != nil {
		return err
	}
	return end.setAddresses(Wire{})
}

// join makes an interface a port of a bridge.
func (e End) join(bridge *netlink.Bridge) error {
	link, err := e.Host.handle.LinkByName(e.Interface)
	if err != nil {
		return err
	}
	if err := e.Host.handle.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("%s: %w", e.Interface, err)
	}
	return e.Host.up(e.Interface)
}

// setAddresses sets the addresses and the rate of an interface and brings it up.
func (e End) setAddresses(w Wire) error {
	h := e.Host.handle
	link, err := h.LinkByName(e.Interface)
	if err != nil {
		return err
	}
	for _, p := range []netip.Prefix{netip.PrefixFrom(e.IPv4, 24), netip.PrefixFrom(e.IPv6, 64)} {
		ip := p.Addr().AsSlice()
		a := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(p.Bits(), 8*len(ip))}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // usable immediately
		}
		if err := h.AddrAdd(link, a); err != nil {
			return fmt.Errorf("address %v: %w", p, err)
		}
	}
	if w.Rate > 0 {
		if err := e.limit(link, w); err != nil {
			return err
		}
	}
	if err := e.Host.up(e.Interface); err != nil {
		return err
	}
	return e.waitForRoute()
}

// routeTimeout bounds waitForRoute.
const routeTimeout = time.Minute

// waitForRoute waits for the local route of the IPv6 address. The kernel adds it some time after the
// interface is up, even without duplicate address detection.
func (e End) waitForRoute() error {
	own := &netlink.Route{Table: unix.RT_TABLE_LOCAL}
	for limit := time.Now().Add(routeTimeout); ; time.Sleep(time.Millisecond) {
		routes, err := e.Host.handle.RouteListFiltered(netlink.FAMILY_V6, own, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		local := func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(e.IPv6.AsSlice()) }
		if slices.ContainsFunc(routes, local) {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("no local route for %v after %v", e.IPv6, routeTimeout)
		}
	}
}

func (e End) limit(link netlink.Link, w Wire) error {
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
		},
		Rate:   uint64(w.Rate),
		Limit:  uint32(cmp.Or(w.Queue, 64<<10)),
		Buffer: netlink.Xmittime(uint64(w.Rate), uint32(4*max(w.MTU, 1500))),
	}
	if err := e.Host.handle.QdiscAdd(tbf); err != nil {
		return fmt.Errorf("set the rate of %d bytes per second: %w", w.Rate, err)
	}
	return nil
}

// Do runs f on this goroutine inside the host. Sockets and processes that f creates belong to the host
// permanently. Goroutines that f starts do not.
func (h *Host) Do(f func() error) error {
	runtime.LockOSThread()
	original, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netlab: %w", err)
	}
	defer original.Close()
	if err := netns.Set(h.ns); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netlab: enter %s: %w", h.Name, err)
	}
	defer func() {
		// A thread that cannot return to its namespace must not run other goroutines.
		if netns.Set(original) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// Sysctl sets a kernel parameter of the host, for example "net.ipv4.tcp_sack" to "0".
func (h *Host) Sysctl(name, value string) error {
	return h.Do(func() error {
		if err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0); err != nil {
			return fmt.Errorf("netlab: %s: %s = %s: %w", h.Name, name, value, err)
		}
		return nil
	})
}

// close removes links and hosts. A process that still runs in a host keeps its namespace alive; tests must
// end theirs first.
func (l *Lab) close() {
	for _, k := range l.links {
		if err := k.close(); err != nil {
			l.tb.Errorf("netlab: link from %s to %s: %v", k.A.Host.Name, k.B.Host.Name, err)
		}
	}
	for _, h := range l.hosts {
		if h.handle != nil {
			h.handle.Close()
		}
		if err := h.ns.Close(); err != nil && !errors.Is(err, unix.EBADF) {
			l.tb.Errorf("netlab: host %s: %v", h.Name, err)
		}
	}
}

// SetMTU changes the interface's MTU.
func (e End) SetMTU(bytes int) error {
	return e.set(func(h *netlink.Handle, link netlink.Link) error { return h.LinkSetMTU(link, bytes) })
}

// Cut brings the interface down, as if the wire were pulled. Restore brings it up again.
func (e End) Cut() error { return e.set((*netlink.Handle).LinkSetDown) }

// Restore undoes Cut.
func (e End) Restore() error { return e.set((*netlink.Handle).LinkSetUp) }

func (e End) set(f func(*netlink.Handle, netlink.Link) error) error {
	link, err := e.Host.handle.LinkByName(e.Interface)
	if err == nil {
		err = f(e.Host.handle, link)
	}
	if err != nil {
		return fmt.Errorf("netlab: %s of %s: %w", e.Interface, e.Host.Name, err)
	}
	return nil
}
