package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

const (
	mtu   = 32 << 10
	retry = 100 * time.Microsecond // until a full link is tried again
)

// unixLink sends frames through datagram sockets of the file system. They are reliable and ordered, and reach the
// processes of one host.
type unixLink struct {
	*net.UnixConn
	raw  syscall.RawConn
	host string

	mu    sync.Mutex
	peers []string // paths of their sockets; the address of a peer is its index + 1
}

func openUnix(c catalog.LinkConfig) (microproto.Link, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("own-%s-%s-%d", c.Run, c.Name, os.Getpid()))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	host, err := os.Hostname()
	return &unixLink{UnixConn: conn, raw: raw, host: host}, err
}

// Acquire implements microproto.FrameSource.
func (l *unixLink) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// Caps implements microproto.Link.
func (l *unixLink) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: mtu, Batch: 1, Reliable: true, Ordered: true}
}

// Offer implements microproto.Link.
func (l *unixLink) Offer(string) ([]byte, error) {
	return []byte(l.host + "\n" + l.LocalAddr().String()), nil
}

// Accept implements microproto.Link.
func (l *unixLink) Accept(remote []byte) (microproto.LinkAddr, error) {
	host, path, _ := strings.Cut(string(remote), "\n")
	if host != l.host {
		return 0, fmt.Errorf("the peer is on host %q, this one on %q", host, l.host)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.address(path); a != 0 {
		return a, nil
	}
	l.peers = append(l.peers, path)
	return microproto.LinkAddr(len(l.peers)), nil
}

// address returns the address of the peer with that socket, 0 if it is unknown. The lock is held.
func (l *unixLink) address(path string) microproto.LinkAddr {
	for i, p := range l.peers {
		if p == path {
			return microproto.LinkAddr(i + 1)
		}
	}
	return 0
}

// Send implements microproto.Link.
func (l *unixLink) Send(batch []microproto.Frame) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(batch) {
		f := &batch[n]
		to := &syscall.SockaddrUnix{Name: l.peers[f.Peer-1]}
		var sent error
		err := l.raw.Control(func(fd uintptr) { sent = syscall.Sendto(int(fd), f.Data, syscall.MSG_DONTWAIT, to) })
		if err != nil {
			return n, err
		}
		if errors.Is(sent, syscall.EAGAIN) || errors.Is(sent, syscall.ENOBUFS) {
			return n, nil
		}
		f.Release() // a peer whose socket is gone is found lost by its control connection
		n++
	}
	return n, nil
}

// Close implements microproto.Link.
func (l *unixLink) Close() error {
	return errors.Join(l.UnixConn.Close(), os.Remove(l.LocalAddr().String()))
}

// Writable implements microproto.Link.
func (l *unixLink) Writable(f func()) { time.AfterFunc(retry, f) }

// Recv implements microproto.Link.
func (l *unixLink) Recv(batch []microproto.Frame) (int, error) {
	for {
		b := microproto.NewBuffer(make([]byte, mtu), nil)
		n, from, err := l.ReadFromUnix(b.Bytes)
		if err != nil {
			return 0, err
		}
		l.mu.Lock()
		peer := l.address(from.Name)
		l.mu.Unlock()
		if peer != 0 {
			batch[0] = b.Frame(peer, 0, n)
			return 1, nil
		}
	}
}
