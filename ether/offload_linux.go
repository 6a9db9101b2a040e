package ether

import (
	"hash/fnv"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segmentControl is a control message UDP_SEGMENT (udp(7)).
type segmentControl struct {
	header unix.Cmsghdr
	size   uint16
	_      [6]byte
}

func (c *segmentControl) set(size uint16) {
	c.header.Level, c.header.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.header.SetLen(unix.SizeofCmsghdr + 2)
	c.size = size
}

// controlBytes hold UDP_GRO (an int) and SO_RXQ_OVFL (a uint32), and as much again.
const controlBytes = 4 * (unix.SizeofCmsghdr + 8)

// parseControl finds the segment size of a coalesced datagram, 0 if it is not one,
// and the socket's count of overflows, 0 if there were none.
func parseControl(b []byte) (segment int, overflow uint32) {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			break
		}
		data := b[unix.SizeofCmsghdr:n]
		switch {
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			segment = int(*(*int32)(unsafe.Pointer(unsafe.SliceData(data))))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			overflow = *(*uint32)(unsafe.Pointer(unsafe.SliceData(data)))
		}
		b = b[min(len(b), unix.CmsgSpace(n-unix.SizeofCmsghdr)):]
	}
	return segment, overflow
}

// segmentationRefused: an interface without checksum offload answers EIO, a
// segment larger than the route's MTU EINVAL or EMSGSIZE (udp(7), udp_send_skb).
func segmentationRefused(e syscall.Errno) bool {
	return e == unix.EIO || e == unix.EINVAL || e == unix.EMSGSIZE || e == unix.EOPNOTSUPP
}

// control runs f on the socket's descriptor.
func control(raw syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func hasGSO(raw syscall.RawConn) bool {
	return control(raw, func(fd int) error {
		_, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT)
		return err
	}) == nil
}

func enableGRO(raw syscall.RawConn) bool {
	return control(raw, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1)
	}) == nil
}

// countOverflow asks for the count of datagrams lost at the receive queue; without
// it that number is not known.
func countOverflow(raw syscall.RawConn) {
	_ = control(raw, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	})
}

// allowFragments lets routers cut a frame that has become too large for its path, over
// IPv4. The kernel allows that of frames that it segments itself; single ones it would
// forbid to be cut, and a path that narrows without a word would swallow those alone.
func allowFragments(raw syscall.RawConn) {
	_ = control(raw, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT)
	})
}

// growQueues asks for queues of that many bytes, past the system's limit where the
// process may, and returns what the kernel granted (it counts its overhead).
func growQueues(raw syscall.RawConn, bytes int) (in, out int) {
	grow := func(fd, force, plain int) int {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes)
		}
		n, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
		return n
	}
	_ = control(raw, func(fd int) error {
		in = grow(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
		out = grow(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
		return nil
	})
	return in, out
}

// pathMTU is the route's MTU of a connected socket; 0 if the kernel does not say.
func pathMTU(conn *net.UDPConn, ip6 bool) (mtu int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if ip6 {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	_ = control(raw, func(fd int) error {
		mtu, err = unix.GetsockoptInt(fd, level, option)
		return err
	})
	return mtu
}

// hostID is the same for two processes that share a loopback interface: the boot
// and the network namespace.
func hostID() uint64 {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	space, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(boot)
	h.Write([]byte(space))
	return h.Sum64()
}
