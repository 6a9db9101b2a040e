//go:build !linux

package ether

import (
	"errors"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/p2pdc/p2pdc/microproto"
)

// segmentsMax is the number of frames worth gathering before a Send. There are no batches here.
const segmentsMax = 64

type sockaddr struct{ unixSockaddr }

func sockaddrOf(a netip.AddrPort, scope uint32, inet4 bool) sockaddr {
	return sockaddr{unixSockaddrOf(a, scope, inet4)}
}

type batch struct{}

func newBatch(*Link) (*batch, error) { return nil, errors.ErrUnsupported }

func (*batch) close() error { return nil }

func (*batch) send(*peerTable, []microproto.Frame) (int, bool, error) { return 0, false, net.ErrClosed }
func (*batch) recv([]microproto.Frame, bool) (int, bool, error)       { return 0, false, net.ErrClosed }
func (*batch) pollRecv([]microproto.Frame, bool) (int, error)         { return 0, net.ErrClosed }
func (*batch) wake()                                                  {}
func (*batch) awaitRoom()                                             {}
func (*batch) hasRoom() bool                                          { return false }

func hasBatch(syscall.RawConn) bool          { return false }
func hasGSO(syscall.RawConn) bool            { return false }
func enableGRO(syscall.RawConn) bool         { return false }
func countOverflow(syscall.RawConn)          {}
func setFragmentation(syscall.RawConn, bool) {}

func setReceiveBytes(syscall.RawConn, int) int { return 0 }

func setSendBytes(syscall.RawConn, int) int { return 0 }
func pathMTU(*net.UDPConn, bool) int        { return 0 }

func hostID() uint64 {
	name, err := os.Hostname()
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	if is, err := net.Interfaces(); err == nil {
		for _, i := range is {
			h.Write(i.HardwareAddr)
		}
	}
	return h.Sum64()
}
