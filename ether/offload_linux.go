package ether

import (
	"hash/fnv"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segmentControl is a UDP_SEGMENT control message (udp(7)).
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

// controlBytes is room for UDP_GRO (an int) and SO_RXQ_OVFL (a uint32), twice.
const controlBytes = 4 * (unix.SizeofCmsghdr + 8)

// parseControl returns the segment size of a coalesced datagram and the socket's count of
// overflows, or 0 for what is absent.
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

// segmentationRefused reports whether an error is due to segmentation offload. An interface
// without checksum offload returns EIO, a segment larger than the route's MTU EINVAL or
// EMSGSIZE (udp(7), udp_send_skb).
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

// setOption sets an option of the socket and reports whether the kernel accepted it.
func setOption(raw syscall.RawConn, level, option, value int) bool {
	return control(raw, func(fd int) error { return unix.SetsockoptInt(fd, level, option, value) }) == nil
}

func enableGRO(raw syscall.RawConn) bool { return setOption(raw, unix.SOL_UDP, unix.UDP_GRO, 1) }

// countOverflow enables the count of datagrams that overflowed the receive queue.
func countOverflow(raw syscall.RawConn) { setOption(raw, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) }

// setFragmentation allows or forbids IPv4 fragments of frames. Frames of one segmented datagram and those of the next have
// overlapping IP identifications, so that a receiver may join fragments of two frames (RFC 4963), and the UDP checksum
// accepts one in 65,536 of them. IP_PMTUDISC_PROBE sets DF on every packet, and leaves it to sessions to find the MTU of
// the path (RFC 8899).
func setFragmentation(raw syscall.RawConn, allowed bool) {
	value := unix.IP_PMTUDISC_PROBE
	if allowed {
		value = unix.IP_PMTUDISC_DONT
	}
	setOption(raw, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, value)
}

// setReceiveBytes requests a receive queue of that many bytes and returns the size granted, which includes the
// kernel's overhead.
func setReceiveBytes(raw syscall.RawConn, bytes int) int {
	return setQueue(raw, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, bytes)
}

// setSendBytes is setReceiveBytes of the send queue.
func setSendBytes(raw syscall.RawConn, bytes int) int {
	return setQueue(raw, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, bytes)
}

// setQueue sets the size of a queue, past the system's limit where the process may.
func setQueue(raw syscall.RawConn, force, plain, bytes int) (granted int) {
	_ = control(raw, func(fd int) (err error) {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes)
		}
		granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
		return err
	})
	return granted
}

// pathMTU returns the MTU of a connected socket's route, or 0 if the kernel does not know it.
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

// hostID identifies the loopback interface: it hashes the boot ID and the network namespace.
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
