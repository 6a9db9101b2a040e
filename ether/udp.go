package ether

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/internal/buffers"
	"github.com/p2pdc/p2pdc/microproto"
)

// Link is a UDP socket as a microproto.Link. All methods may be called from several
// goroutines at once; concurrent calls of Recv run one after the other.
type Link struct {
	config Config
	conn   *net.UDPConn // nil with batch, which owns the socket then
	raw    syscall.RawConn
	local  netip.AddrPort // unmapped; unspecified when bound to all addresses
	inet4  bool           // the socket's family
	host   uint64         // hostID
	key    uint64         // of offers, random

	pool          buffers.Pool
	count         counters
	lastSendError atomic.Pointer[error]

	gso          atomic.Bool // enabled and not refused by the kernel
	gro          bool
	receiveBytes int // of the kernel's queue, as granted

	opened    time.Time
	queueMu   sync.Mutex // guards queue
	queue     sendQueue
	sendBytes atomic.Int64 // of the kernel's queue, as granted

	roomMu      sync.Mutex
	onRoom      []func()    // to call when the send queue has room; guarded by roomMu
	watchesRoom bool        // a goroutine waits for room; guarded by roomMu
	awaitsRoom  atomic.Bool // onRoom is not empty

	frameSize atomic.Int64 // current size of the largest frame
	closed    atomic.Bool
	mu        sync.Mutex // serialises Accept
	peers     atomic.Pointer[peerTable]

	cables cables
	batch  *batch // nil: one datagram per system call
	single single
}

var (
	_ microproto.Link      = (*Link)(nil)
	_ microproto.Connected = (*Link)(nil)
)

// Open listens. An error about a port in use, a wrong address or a wrong range names it and
// the flag that changes it.
func Open(c Config) (*Link, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBufferBytes)
	c.SocketBytes = cmp.Or(c.SocketBytes, defaultSocketBytes)
	conn, err := c.listen()
	if err != nil {
		return nil, err
	}
	l := &Link{config: c, conn: conn, host: hostID(), key: randomKey(), opened: time.Now()}
	l.pool.Init([]int{smallBytes, jumboBytes, datagramBytes}, c.BufferBytes, nil)
	if err := l.setUp(); err != nil {
		if l.conn != nil { // newBatch closes the socket that it has taken
			_ = l.conn.Close()
		}
		return nil, err
	}
	return l, nil
}

func randomKey() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
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
	own, err := interfaceMTU(l.local.Addr())
	if err != nil && l.config.MTU == 0 {
		return err
	}
	mtu := cmp.Or(l.config.MTU, own)
	setFragmentation(raw, mtu > own) // a packet larger than the interface's MTU must be fragmented
	l.frameSize.Store(int64(frameBytes(mtu, !l.inet4)))
	l.receiveBytes = setReceiveBytes(raw, l.config.SocketBytes)
	l.queue.least, l.queue.most = min(minSendBytes, l.config.SocketBytes), l.config.SocketBytes
	l.queue.bytes = l.queue.least
	l.sendBytes.Store(int64(setSendBytes(raw, l.queue.bytes)))
	if !l.config.DisableBatch && hasBatch(raw) {
		l.gso.Store(!l.config.DisableGSO && hasGSO(raw))
		l.gro = !l.config.DisableGRO && enableGRO(raw)
		countOverflow(raw)
		if l.batch, err = newBatch(l); err != nil {
			return err
		}
	}
	l.single.init(l)
	l.cables.init(l)
	return nil
}

// listen binds the named port, or the first free port of the range.
func (c *Config) listen() (*net.UDPConn, error) {
	network, ip, port, err := c.resolve()
	if err != nil {
		return nil, err
	}
	host := ip.String()
	if c.Listen == "" || ip.IsUnspecified() && network == "udp" {
		host = "" // both families, or IPv4 alone on a host without IPv6
	}
	low, high := port, port
	if port == 0 && c.PortLow != 0 {
		low, high = c.PortLow, c.PortHigh
	}
	for p := low; p <= high; p++ {
		var pc net.PacketConn
		address := strconv.Itoa(p)
		pc, err = new(net.ListenConfig).ListenPacket(context.Background(), network, net.JoinHostPort(host, address))
		if err == nil {
			return pc.(*net.UDPConn), nil
		}
		if !errors.Is(err, errInUse) {
			return nil, fmt.Errorf("ether: cannot listen on %s: %w (--listen)", net.JoinHostPort(ip.String(), address), err)
		}
	}
	if low == high {
		return nil, fmt.Errorf("ether: UDP port %d of %s is in use: "+
			"stop the program that uses it, or choose another port with --listen or --port-range: %w", low, ip, err)
	}
	return nil, fmt.Errorf("ether: all UDP ports %d-%d of %s are in use: widen --port-range: %w", low, high, ip, err)
}

// LocalAddr returns the address and port that the link is bound to.
func (l *Link) LocalAddr() netip.AddrPort { return l.local }

func (l *Link) log(format string, args ...any) {
	if l.config.Log != nil {
		l.config.Log(fmt.Sprintf(format, args...))
	}
}

// gatherBytes is the payload size from which a frame's Body may stay in the user's memory.
// Each additional vector costs the kernel as much as copying about half a kilobyte.
const gatherBytes = 16 << 10

// Caps returns the link's capabilities, which are the same in both modes. The largest frame
// is the MTU less the IP and UDP headers. Accept may reduce it if Config.MTU is 0.
func (l *Link) Caps(microproto.Mode) microproto.Caps {
	c := microproto.Caps{MTU: int(l.frameSize.Load()), Batch: segmentsMax}
	if l.batch != nil && l.gso.Load() {
		c.Train, c.Gather = frameBytes(MaxMTU, !l.inet4), gatherBytes
	}
	return c
}

// Sizes of pooled buffers: an ordinary frame, a jumbo frame, and the largest datagram before and after receive
// coalescing.
const (
	smallBytes    = 2048
	jumboBytes    = 10240
	datagramBytes = 65536
)

// buffer returns a pooled buffer of at least n bytes, or nil, which it counts, when the pool is exhausted.
func (l *Link) buffer(n int) *microproto.Buffer {
	b := l.pool.Get(n, false)
	if b == nil {
		l.count.PlainAcquires.Add(1)
	}
	return b
}

// Acquire returns pooled memory, or unpooled memory when the pool is exhausted. It panics if
// n is larger than any datagram.
func (l *Link) Acquire(n int) microproto.Frame {
	if n > datagramBytes {
		panic("ether: frame of " + strconv.Itoa(n) + " bytes: larger than Caps.MTU")
	}
	if b := l.buffer(n); b != nil {
		return b.Frame(0, 0, n)
	}
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// Send sends a prefix of batch. A frame to an address that was never accepted or larger than a
// datagram is an error. A frame that the network refuses is lost and counted.
func (l *Link) Send(batch []microproto.Frame) (int, error) {
	peers, most := l.peers.Load(), frameBytes(MaxMTU, !l.inet4)
	for i := range batch {
		p := peers.peer(batch[i].Peer)
		if p != nil && batch[i].Bytes() <= most {
			continue
		}
		err := fmt.Errorf("ether: frame to link address %d, which was never accepted", batch[i].Peer)
		if p != nil {
			err = fmt.Errorf("ether: frame of %d bytes: the largest datagram holds %d", batch[i].Bytes(), most)
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
	if l.batch != nil {
		n, full, err = l.batch.send(peers, batch)
	} else {
		n, full, err = l.single.send(peers, batch)
	}
	if full {
		l.count.SendFull.Add(1)
		l.resizeQueue()
	}
	return n, l.closedError(err)
}

// resizeQueue adapts the send queue, which is full, to the rate of the device.
func (l *Link) resizeQueue() {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	if l.queue.full(time.Since(l.opened), l.count.BytesSent.Load()) {
		l.sendBytes.Store(int64(setSendBytes(l.raw, l.queue.bytes)))
	}
}

// Recv returns frames of accepted peers, one by one.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.receive(batch, false) }

// RecvTrains is Recv that returns frames coalesced by the kernel as trains; see
// microproto.Frame.Segment. A train may hold frames of several messages and sessions.
func (l *Link) RecvTrains(batch []microproto.Frame) (int, error) { return l.receive(batch, true) }

func (l *Link) receive(batch []microproto.Frame, trains bool) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		n, woken, err := 0, false, error(nil)
		if l.batch != nil {
			n, woken, err = l.batch.recv(batch, trains)
		} else {
			n, err = l.single.recv(batch)
		}
		if n > 0 || woken || err != nil {
			return n, l.closedError(err)
		}
	}
}

// TryRecv is RecvTrains that never waits; it returns 0 frames when none has arrived. It may be
// called while another goroutine waits in Recv, and takes frames that would have woken it: a
// compute loop handles arrivals without waiting for another thread to be scheduled. It returns
// errors.ErrUnsupported on systems without batches.
func (l *Link) TryRecv(batch []microproto.Frame) (int, error) { return l.pollRecv(batch, false) }

// AwaitRecv is TryRecv that waits for a frame or for Wake, after which there may be no frame.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) { return l.pollRecv(batch, true) }

func (l *Link) pollRecv(batch []microproto.Frame, waits bool) (int, error) {
	if l.batch == nil {
		return 0, errors.ErrUnsupported
	}
	if len(batch) == 0 {
		return 0, nil
	}
	if l.awaitsRoom.Load() && l.batch.hasRoom() {
		l.reportRoom()
	}
	n, err := l.batch.pollRecv(batch, waits)
	return n, l.closedError(err)
}

// Wake makes the waiting RecvTrains or AwaitRecv, or else the next one, return without a frame.
// It does nothing on systems without batches.
func (l *Link) Wake() {
	if l.batch != nil {
		l.batch.wake()
	}
}

// closedError returns net.ErrClosed for errors that Close causes.
func (l *Link) closedError(err error) error {
	if err != nil && (l.closed.Load() || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed)) {
		return net.ErrClosed
	}
	return err
}

// Writable calls f when the socket has room or the link is closed: on a goroutine of its own, or from TryRecv or
// AwaitRecv where one of these finds out first.
func (l *Link) Writable(f func()) {
	l.roomMu.Lock()
	defer l.roomMu.Unlock()
	l.onRoom = append(l.onRoom, f)
	l.awaitsRoom.Store(true)
	if !l.watchesRoom {
		l.watchesRoom = true
		go l.watchRoom()
	}
}

// watchRoom waits for room and reports it. It returns when no call of Writable is left.
func (l *Link) watchRoom() {
	for waits := true; waits; {
		l.awaitRoom()
		l.reportRoom()
		l.roomMu.Lock()
		waits = len(l.onRoom) > 0
		l.watchesRoom = waits
		l.roomMu.Unlock()
	}
}

// reportRoom calls those that wait for room.
func (l *Link) reportRoom() {
	l.roomMu.Lock()
	calls := l.onRoom
	l.onRoom = nil
	l.awaitsRoom.Store(false)
	l.roomMu.Unlock()
	for _, f := range calls {
		f()
	}
}

// Close unblocks Recv. Frames already received stay valid until released.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.cables.close()
	if l.batch != nil {
		return l.batch.close()
	}
	return l.conn.Close()
}
