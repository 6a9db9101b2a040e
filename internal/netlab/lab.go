//go:build linux

package netlab

import (
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

// Reporter is what a lab needs of whoever asks for it: a testing.TB, or a program that
// measures. Fatalf and Skipf do not return; what Cleanup is given runs at the end, last first.
type Reporter interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Lab is a set of hosts of one test. It is for one goroutine.
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

// Wire says what a wire is like. The zero value has Ethernet's MTU and no bound of
// its rate.
type Wire struct {
	MTU int // bytes; 0: 1500
	// Rate in bytes a second, in each direction; 0: no bound. Queue is how many
	// bytes wait for it at most (0: 64 KiB); what is more is dropped.
	Rate, Queue int
}

// New makes an empty lab, or skips the test, with the reason, where that is not
// possible.
func New(tb Reporter) *Lab {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skipf("network namespaces need root")
	}
	l := &Lab{tb: tb}
	if err := namespaces(); err != nil {
		tb.Skipf("no network namespaces here: %v", err)
	}
	tb.Cleanup(l.close)
	return l
}

// namespaces tries one out.
func namespaces() error {
	ns, err := newNamespace()
	if err != nil {
		return err
	}
	return ns.Close()
}

// newNamespace makes one and comes back.
func newNamespace() (netns.NsHandle, error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return 0, err
	}
	defer home.Close()
	ns, err := netns.New()
	if err != nil {
		runtime.UnlockOSThread() // nothing has changed
		return 0, fmt.Errorf("unshare: %w", err)
	}
	if err := netns.Set(home); err != nil {
		return 0, err // the thread stays locked, and ends with its goroutine
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

// Join lays a wire between two hosts. Its ends have the addresses 10.77.w.1 and .2
// and fd77:w::1 and ::2, w being the wire's number in the lab.
func (l *Lab) Join(a, b *Host, w Wire) (endA, endB End) {
	l.tb.Helper()
	ends := l.ends(a, b)
	if err := lay(ends[0], ends[1], w); err != nil {
		l.tb.Fatalf("netlab: wire from %s to %s: %v", a.Name, b.Name, err)
	}
	return ends[0], ends[1]
}

// ends numbers and names the two ends of a new wire.
func (l *Lab) ends(a, b *Host) (ends [2]End) {
	l.wires++
	for i, h := range []*Host{a, b} {
		ends[i] = End{
			Host: h, Interface: fmt.Sprintf("wire%d", h.wires),
			IPv4: netip.AddrFrom4([4]byte{10, 77, byte(l.wires), byte(i + 1)}),
			IPv6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(l.wires), 15: byte(i + 1)}),
		}
		h.wires++
	}
	return ends
}

func lay(a, b End, w Wire) error {
	if w.MTU == 0 {
		w.MTU = 1500
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a.Interface, w.MTU
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: b.Interface, PeerMTU: uint32(w.MTU), PeerNamespace: netlink.NsFd(int(b.Host.ns))}
	if err := a.Host.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	for _, e := range []End{a, b} {
		if err := e.dress(w); err != nil {
			return fmt.Errorf("on %s: %w", e.Host.Name, err)
		}
	}
	return nil
}

// dress gives an end its addresses and its rate.
func (e End) dress(w Wire) error {
	h := e.Host.handle
	link, err := h.LinkByName(e.Interface)
	if err != nil {
		return err
	}
	for _, p := range []netip.Prefix{netip.PrefixFrom(e.IPv4, 24), netip.PrefixFrom(e.IPv6, 64)} {
		ip := p.Addr().AsSlice()
		a := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(p.Bits(), 8*len(ip))}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // usable at once
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
	return e.settle()
}

// settleTime bounds settle: only a kernel that never gets round to it takes so long.
const settleTime = time.Minute

// settle waits until packets to the IPv6 address find their way: the kernel gets round to
// that after the interface is up, also where no neighbour is asked whether it has the same.
func (e End) settle() error {
	own := &netlink.Route{Table: unix.RT_TABLE_LOCAL}
	for limit := time.Now().Add(settleTime); ; time.Sleep(time.Millisecond) {
		routes, err := e.Host.handle.RouteListFiltered(netlink.FAMILY_V6, own, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(e.IPv6.AsSlice()) }) {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("no route to its own address %v", e.IPv6)
		}
	}
}

func (e End) limit(link netlink.Link, w Wire) error {
	if w.Queue == 0 {
		w.Queue = 64 << 10
	}
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(w.Rate), Limit: uint32(w.Queue), Buffer: netlink.Xmittime(uint64(w.Rate), uint32(4*max(w.MTU, 1500))),
	}
	if err := e.Host.handle.QdiscAdd(tbf); err != nil {
		return fmt.Errorf("bound of %d bytes a second: %w", w.Rate, err)
	}
	return nil
}

// Do runs f on this goroutine inside the host: sockets that f makes, and processes
// that it starts, belong there, and stay there when f has returned. Goroutines that f
// starts do not.
func (h *Host) Do(f func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netlab: %w", err)
	}
	defer home.Close()
	if err := netns.Set(h.ns); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("netlab: enter %s: %w", h.Name, err)
	}
	defer func() {
		// A thread that cannot come back must not be used by anybody else.
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// Sysctl sets one of the host's own kernel parameters: "net.ipv4.tcp_sack", "0".
func (h *Host) Sysctl(name, value string) error {
	return h.Do(func() error {
		if err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0); err != nil {
			return fmt.Errorf("netlab: %s: %s = %s: %w", h.Name, name, value, err)
		}
		return nil
	})
}

// close takes the hosts down. Processes that the test has left in one keep it
// alive, so it ends its own first.
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

// Cut takes the wire down, as if it were pulled; Mend puts it back.
func (e End) Cut() error { return e.set((*netlink.Handle).LinkSetDown) }

// Mend undoes Cut.
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
