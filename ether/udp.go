package ether

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/p2pdc/p2pdc/microproto"
)

// Link is a UDP socket as a microproto.Link. All methods may be called from
// several goroutines at once; Recvs take turns.
type Link struct {
	config Config
	conn   *net.UDPConn // nil with batches: the socket is theirs
	raw    syscall.RawConn
	local  netip.AddrPort // unmapped; unspecified when bound to all addresses
	inet4  bool           // the socket's family
	host   uint64

	pool  *pool
	count counters

	gso                     atomic.Bool // wanted and not given up
	unbatched               bool        // without batches
	gro                     bool
	receiveBytes, sendBytes int

	frameSize atomic.Int64 // largest frame now
	closed    atomic.Bool
	mu        sync.Mutex // of Accept
	peers     atomic.Pointer[peerTable]

	batch  *batch
	single single
}

var _ microproto.Link = (*Link)(nil)

// Open listens. The error of a port in use, a wrong address or range names it and
// the flag that changes it.
func Open(c Config) (*Link, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = defaultBufferBytes
	}
	if c.SocketBytes == 0 {
		c.SocketBytes = defaultSocketBytes
	}
	conn, err := c.listen()
	if err != nil {
		return nil, err
	}
	l := &Link{config: c, conn: conn, host: hostID(), pool: newPool(c.BufferBytes)}
	if err := l.setUp(); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Link) setUp() error {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("ether: %w", err)
	}
	l.raw = raw
	bound := l.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	l.inet4 = bound.Addr().Is4()
	l.local = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	l.peers.Store(&peerTable{})
	mtu := l.config.MTU
	if mtu == 0 {
		if mtu, err = interfaceMTU(l.local.Addr()); err != nil {
			return err
		}
	}
	l.frameSize.Store(int64(frameBytes(mtu, !l.inet4)))
	l.receiveBytes, l.sendBytes = growQueues(raw, l.config.SocketBytes)
	allowFragments(raw)
	l.unbatched = l.config.DisableBatch || !hasBatch(raw)
	if !l.unbatched {
		l.gso.Store(!l.config.DisableGSO && hasGSO(raw))
		l.gro = !l.config.DisableGRO && enableGRO(raw)
		countOverflow(raw)
		if l.batch, err = newBatch(l); err != nil {
			return err
		}
	}
	l.single.init(l)
	return nil
}

// listen binds the socket: the port named, or the first free one of the range.
func (c *Config) listen() (*net.UDPConn, error) {
	network, ip, port, err := c.resolve()
	if err != nil {
		return nil, err
	}
	host := ip.String()
	if c.Listen == "" || ip.IsUnspecified() && network == "udp" {
		host = "" // both families, or IPv4 where there is no IPv6
	}
	low, high := port, port
	if port == 0 && c.PortLow != 0 {
		low, high = c.PortLow, c.PortHigh
	}
	for p := low; p <= high; p++ {
		var pc net.PacketConn
		pc, err = new(net.ListenConfig).ListenPacket(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(p)))
		if err == nil {
			return pc.(*net.UDPConn), nil
		}
		if !errors.Is(err, errInUse) {
			return nil, fmt.Errorf("ether: cannot listen on %s: %w (--listen)", net.JoinHostPort(ip.String(), strconv.Itoa(p)), err)
		}
	}
	if low == high {
		return nil, fmt.Errorf("ether: UDP port %d of %s is in use: stop what uses it, or choose another with --listen or --port-range: %w", low, ip, err)
	}
	return nil, fmt.Errorf("ether: all UDP ports %d-%d of %s are in use: widen --port-range: %w", low, high, ip, err)
}

// LocalAddr is the address and port that the link is bound to.
func (l *Link) LocalAddr() netip.AddrPort { return l.local }

func (l *Link) batched() bool { return !l.unbatched }

func (l *Link) log(format string, args ...any) {
	if l.config.Log != nil {
		l.config.Log(fmt.Sprintf(format, args...))
	}
}

// gatherBytes is from where on it pays to leave payloads in the memory of the user: a
// piece more costs the kernel as much as half a kilobyte.
const gatherBytes = 16 << 10

// Caps: a frame is what the MTU leaves after the IP and UDP headers. It may become
// less with Accept, when the MTU was left to the link.
func (l *Link) Caps(microproto.Mode) microproto.Caps {
	c := microproto.Caps{MTU: int(l.frameSize.Load()), Batch: segmentsMax}
	if l.batched() && l.gso.Load() {
		c.Train, c.Gather = frameBytes(MaxMTU, !l.inet4), gatherBytes
	}
	return c
}

// Acquire returns pooled memory, or memory of its own past the pool's bound. It
// panics when n is larger than any datagram.
func (l *Link) Acquire(n int) microproto.Frame {
	class := classOf(n)
	if class < 0 {
		panic("ether: frame of " + strconv.Itoa(n) + " bytes: larger than Caps.MTU")
	}
	if b := l.pool.get(class); b != nil {
		return b.Frame(0, 0, n)
	}
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// Send: a frame to an address that was never accepted, or larger than a datagram,
// is an error; one that the network refuses is lost, as on the way, and counted.
func (l *Link) Send(batch []microproto.Frame) (int, error) {
	r := l.peers.Load()
	for i := range batch {
		p := r.peer(batch[i].Peer)
		if p != nil && batch[i].Bytes() <= frameBytes(MaxMTU, !l.inet4) {
			continue
		}
		err := fmt.Errorf("ether: frame to link address %d, which was never accepted", batch[i].Peer)
		if p != nil {
			err = fmt.Errorf("ether: frame of %d bytes: the largest datagram holds %d", batch[i].Bytes(), frameBytes(MaxMTU, !l.inet4))
		}
		if i == 0 {
			return 0, err
		}
		n, e := l.Send(batch[:i])
		if n == i && e == nil {
			e = err
		}
		return n, e
	}
	n, full, err := 0, false, error(nil)
	if l.batched() {
		n, full, err = l.batch.send(r, batch)
	} else {
		n, full, err = l.single.send(r, batch)
	}
	if full {
		l.count.sendFull.Add(1)
	}
	return n, l.closedError(err)
}

// Recv returns frames of accepted peers only, one by one.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.receive(batch, false) }

// RecvTrains is Recv that leaves frames together that the kernel has joined: see
// microproto.Frame.Segment. They may be of several messages and several sessions.
func (l *Link) RecvTrains(batch []microproto.Frame) (int, error) { return l.receive(batch, true) }

func (l *Link) receive(batch []microproto.Frame, whole bool) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		n, rung, err := 0, false, error(nil)
		if l.batched() {
			n, rung, err = l.batch.recv(batch, whole)
		} else {
			n, err = l.single.recv(batch)
		}
		if n > 0 || rung || err != nil {
			return n, l.closedError(err)
		}
	}
}

// AwaitRecv is TryRecv that waits until something has come, or Wake is called: then
// there may be no frame. Where there are no batches it does not wait.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 || !l.batched() {
		return 0, nil
	}
	n, err := l.batch.awaitRecv(batch)
	return n, l.closedError(err)
}

// Wake makes a RecvTrains or AwaitRecv that waits, or else the next one, return without
// a frame. Where there are no batches it does nothing.
func (l *Link) Wake() {
	if l.batched() {
		l.batch.wake()
	}
}

// TryRecv is RecvTrains that never waits: 0 frames when none is there now. It may be
// called while another goroutine waits in Recv, and takes frames that would have
// woken it: whoever computes can take in what has come without waiting for another
// thread to be scheduled. Where there are no batches it finds nothing.
func (l *Link) TryRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 || !l.batched() {
		return 0, nil
	}
	n, err := l.batch.tryRecv(batch)
	return n, l.closedError(err)
}

func (l *Link) closedError(err error) error {
	if err != nil && (l.closed.Load() || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed)) {
		return net.ErrClosed
	}
	return err
}

// Writable: f runs on a goroutine of its own, also when the link is closed.
func (l *Link) Writable(f func()) {
	go func() {
		l.awaitRoom()
		f()
	}()
}

// Close unblocks Recv. Frames already received stay valid until released.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	if l.batch != nil {
		return l.batch.close()
	}
	return l.conn.Close()
}
