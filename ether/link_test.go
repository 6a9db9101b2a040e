package ether_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
)

func open(t testing.TB, c ether.Config) *ether.Link {
	t.Helper()
	c.Log = func(line string) { t.Log(line) }
	l, err := ether.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// join makes two links accept each other. It returns the link address of b at a, and of a at b.
func join(t testing.TB, a, b *ether.Link) (toB, toA microproto.LinkAddr) {
	t.Helper()
	oa, err := a.Offer("b")
	require.NoError(t, err)
	ob, err := b.Offer("a")
	require.NoError(t, err)
	toB, err = a.Accept(ob)
	require.NoError(t, err)
	toA, err = b.Accept(oa)
	require.NoError(t, err)
	return toB, toA
}

func needIPv6(t testing.TB) {
	t.Helper()
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 on this host: %v", err)
	}
	c.Close()
}

// fill writes a frame's number, and bytes derived from it.
func fill(f microproto.Frame, number uint32) {
	for i := range f.Data {
		f.Data[i] = byte(number + uint32(i)*7)
	}
	if len(f.Data) >= 4 {
		binary.BigEndian.PutUint32(f.Data, number)
	}
}

// inbox receives in the background until the link is closed.
type inbox struct {
	frames chan []byte
	peers  chan microproto.LinkAddr
	err    chan error
}

func receive(l *ether.Link, room int) *inbox {
	in := &inbox{make(chan []byte, room), make(chan microproto.LinkAddr, room), make(chan error, 1)}
	go func() {
		batch := make([]microproto.Frame, 7) // fewer than the segments of a datagram
		for {
			n, err := l.Recv(batch)
			for i := range batch[:n] {
				in.frames <- bytes.Clone(batch[i].Data)
				in.peers <- batch[i].Peer
				batch[i].Release()
			}
			if err != nil {
				in.err <- err
				return
			}
		}
	}()
	return in
}

func (in *inbox) next(t testing.TB) []byte {
	t.Helper()
	return <-in.frames
}

// send sends all frames, waiting while the link is full.
func send(t testing.TB, l *ether.Link, frames []microproto.Frame) {
	t.Helper()
	for len(frames) > 0 {
		n, err := l.Send(frames)
		require.NoError(t, err)
		for _, f := range frames[:n] {
			require.Nil(t, f.Data, "a frame taken was not released")
		}
		if frames = frames[n:]; len(frames) > 0 {
			room := make(chan struct{})
			l.Writable(func() { close(room) })
			<-room
		}
	}
}

// With every offload, family and MTU, all frames arrive once, with their bytes and boundaries.
func TestExchange(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		for _, mtu := range []int{0, 1280, 1500, 9000, 65535} {
			for mask := range 8 {
				c := ether.Config{Listen: address, MTU: mtu,
					DisableGSO: mask&1 != 0, DisableGRO: mask&2 != 0, DisableBatch: mask&4 != 0}
				name := fmt.Sprintf("%s/%d/gso=%t/gro=%t/batch=%t", address, mtu, !c.DisableGSO, !c.DisableGRO, !c.DisableBatch)
				t.Run(name, func(t *testing.T) { exchange(t, c) })
			}
		}
	}
}

func exchange(t *testing.T, c ether.Config) {
	if c.Listen == "::1" {
		needIPv6(t)
	}
	a, b := open(t, c), open(t, c)
	toB, toA := join(t, a, b)
	largest := a.Caps(microproto.ModeSynchronous).MTU
	header := 28
	if c.Listen == "::1" {
		header = 48
	}
	if c.MTU == 0 {
		require.Equal(t, 65535-header, largest, "loopback's MTU")
	} else {
		require.Equal(t, c.MTU-header, largest)
	}
	// Equal frames followed by a shorter one, then increasing sizes, then the largest.
	var sizes []int
	for range 130 {
		sizes = append(sizes, min(1000, largest))
	}
	sizes = append(sizes, 17, 4, 5, 600, 601, largest, largest, largest-1, largest, 8)
	in := receive(b, 4*len(sizes))
	want := map[uint32]int{}
	var frames []microproto.Frame
	for i, n := range sizes {
		f := a.Acquire(n)
		f.Peer = toB
		fill(f, uint32(i))
		frames = append(frames, f)
		want[uint32(i)] = n
	}
	send(t, a, frames)
	for len(want) > 0 {
		got := in.next(t)
		require.Equal(t, toA, <-in.peers)
		number := binary.BigEndian.Uint32(got)
		n, ok := want[number]
		require.True(t, ok, "frame %d twice, or never sent", number)
		require.Len(t, got, n)
		expect := microproto.Frame{Data: make([]byte, n)}
		fill(expect, number)
		require.Equal(t, expect.Data, got)
		delete(want, number)
	}
	s, r := a.Stats(), b.Stats()
	require.EqualValues(t, len(sizes), s.FramesSent)
	require.Zero(t, s.SendLost, "%v", s.LastSendError)
	require.Equal(t, s.BytesSent, r.BytesReceived)
	require.Equal(t, s.FramesSent, r.FramesReceived)
	require.Equal(t, !c.DisableBatch, s.Batch)
	require.Equal(t, !c.DisableBatch && !c.DisableGSO, s.GSO && s.SuperSent > 0)
	if c.DisableGRO || c.DisableBatch {
		require.Zero(t, r.SuperReceived)
	} else if s.SuperSent > 0 {
		require.NotZero(t, r.SuperReceived, "GRO should keep together what GSO sent")
	}
}

func TestEmptyFrame(t *testing.T) {
	for _, plain := range []bool{false, true} {
		c := ether.Config{Listen: "127.0.0.1", DisableBatch: plain}
		a, b := open(t, c), open(t, c)
		toB, _ := join(t, a, b)
		in := receive(b, 4)
		frames := make([]microproto.Frame, 3)
		for i := range frames {
			frames[i] = a.Acquire(0)
			frames[i].Peer = toB
		}
		send(t, a, frames)
		for range frames {
			require.Empty(t, in.next(t))
		}
	}
}

func TestUnknownSourceIsCountedAndDropped(t *testing.T) {
	for _, plain := range []bool{false, true} {
		c := ether.Config{Listen: "127.0.0.1", DisableBatch: plain}
		a, b, unaccepted := open(t, c), open(t, c), open(t, c)
		toB, _ := join(t, a, b)
		offer, err := b.Offer("unaccepted")
		require.NoError(t, err)
		fromUnaccepted, err := unaccepted.Accept(offer)
		require.NoError(t, err)
		in := receive(b, 4)
		for i, from := range []*ether.Link{unaccepted, a} {
			f := from.Acquire(100)
			f.Peer = []microproto.LinkAddr{fromUnaccepted, toB}[i]
			fill(f, uint32(i))
			send(t, from, []microproto.Frame{f})
		}
		require.EqualValues(t, 1, binary.BigEndian.Uint32(in.next(t)), "a frame from an address never accepted")
		require.EqualValues(t, 1, b.Stats().Unknown)
		require.EqualValues(t, 1, b.Stats().FramesReceived)
	}
}

func TestTryRecv(t *testing.T) {
	c := ether.Config{Listen: "127.0.0.1"}
	a, b := open(t, c), open(t, c)
	toB, toA := join(t, a, b)
	batch := make([]microproto.Frame, 3)
	n, err := b.TryRecv(batch)
	require.NoError(t, err)
	require.Zero(t, n)
	const count = 20
	var frames []microproto.Frame
	for i := range count {
		f := a.Acquire(500)
		f.Peer = toB
		fill(f, uint32(i))
		frames = append(frames, f)
	}
	send(t, a, frames) // loopback delivers at once
	for i := uint32(0); i < count; {
		n, err = b.TryRecv(batch)
		require.NoError(t, err)
		require.NotZero(t, n)
		for k := range batch[:n] {
			batch[k].Pieces(func(f microproto.Frame) {
				require.Equal(t, i, binary.BigEndian.Uint32(f.Data))
				require.Equal(t, toA, f.Peer)
				f.Release()
				i++
			})
		}
	}
	in := receive(b, 1)
	n, err = b.TryRecv(batch) // while another goroutine waits in Recv
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, b.Close())
	require.ErrorIs(t, <-in.err, net.ErrClosed)
	_, err = b.TryRecv(batch)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestCloseUnblocksReceive(t *testing.T) {
	for _, plain := range []bool{false, true} {
		l := open(t, ether.Config{Listen: "127.0.0.1", DisableBatch: plain})
		in := receive(l, 1)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-in.err, net.ErrClosed)
		_, err := l.Recv(make([]microproto.Frame, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		done := make(chan struct{})
		l.Writable(func() { close(done) })
		<-done
	}
}

func TestSendAfterClose(t *testing.T) {
	for _, plain := range []bool{false, true} {
		c := ether.Config{Listen: "127.0.0.1", DisableBatch: plain}
		a, b := open(t, c), open(t, c)
		toB, _ := join(t, a, b)
		f := a.Acquire(10)
		f.Peer = toB
		require.NoError(t, a.Close())
		n, err := a.Send([]microproto.Frame{f})
		require.Zero(t, n)
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

func TestSendRejectsInvalidFrames(t *testing.T) {
	a, b := open(t, ether.Config{Listen: "127.0.0.1"}), open(t, ether.Config{Listen: "127.0.0.1"})
	toB, _ := join(t, a, b)
	good, stray := a.Acquire(10), a.Acquire(10)
	good.Peer, stray.Peer = toB, toB+1
	n, err := a.Send([]microproto.Frame{good, stray})
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, "never accepted")
	huge := microproto.Frame{Peer: toB, Data: make([]byte, 65508)}
	n, err = a.Send([]microproto.Frame{huge})
	require.Zero(t, n)
	require.ErrorContains(t, err, "65508 bytes")
	require.Panics(t, func() { a.Acquire(65537) })
}

func TestPortInUse(t *testing.T) {
	a := open(t, ether.Config{Listen: "127.0.0.1"})
	port := int(a.LocalAddr().Port())
	_, err := ether.Open(ether.Config{Listen: a.LocalAddr().String()})
	require.ErrorContains(t, err, "UDP port "+strconv.Itoa(port)+" of 127.0.0.1 is in use")
	require.ErrorContains(t, err, "--listen")
	_, err = ether.Open(ether.Config{Listen: "127.0.0.1", PortLow: port, PortHigh: port})
	require.ErrorContains(t, err, "--port-range")
}

func TestPortRange(t *testing.T) {
	// Find two consecutive ports that are free.
	for range 50 {
		a := open(t, ether.Config{Listen: "127.0.0.1"})
		port := int(a.LocalAddr().Port())
		if port == 65535 {
			continue
		}
		b, err := ether.Open(ether.Config{Listen: "127.0.0.1", PortLow: port, PortHigh: port + 1})
		if err != nil {
			continue // another socket has the next one
		}
		require.EqualValues(t, port+1, b.LocalAddr().Port())
		_, err = ether.Open(ether.Config{Listen: "127.0.0.1", PortLow: port, PortHigh: port + 1})
		require.ErrorContains(t, err, fmt.Sprintf("all UDP ports %d-%d of 127.0.0.1 are in use", port, port+1))
		require.NoError(t, b.Close())
		return
	}
	require.FailNow(t, "no two neighbouring ports in 50 tries")
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config ether.Config
		want   string
	}{
		{ether.Config{MTU: 1279}, "MTU 1279"},
		{ether.Config{MTU: 65536}, "MTU 65536"},
		{ether.Config{PortLow: 10, PortHigh: 9}, "port range 10-9"},
		{ether.Config{PortLow: 0, PortHigh: 9}, "port range 0-9"},
		{ether.Config{PortLow: 1, PortHigh: 65536}, "port range 1-65536"},
		{ether.Config{Listen: "127.0.0.1:x"}, `port "x"`},
		{ether.Config{Listen: "127.0.0.1:70000"}, `port "70000"`},
		{ether.Config{Listen: "1:2:3:4"}, "--listen"},
		{ether.Config{Listen: "203.0.113.7"}, "203.0.113.7"}, // not an address of this host
	} {
		l, err := ether.Open(c.config)
		if err == nil {
			l.Close()
		}
		require.ErrorContains(t, err, c.want)
	}
}

func TestListenForms(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.0.0.1:0": "127.0.0.1", "localhost": "127.0.0.1",
		"0.0.0.0": "0.0.0.0", "0.0.0.0:0": "0.0.0.0",
	} {
		l := open(t, ether.Config{Listen: listen})
		require.Equal(t, want, l.LocalAddr().Addr().String(), listen)
	}
	needIPv6(t)
	for _, listen := range []string{"::1", "[::1]", "[::1]:0"} {
		l := open(t, ether.Config{Listen: listen})
		require.Equal(t, netip.IPv6Loopback(), l.LocalAddr().Addr(), listen)
	}
	for _, listen := range []string{"", "::", "[::]:0", ":0"} {
		l := open(t, ether.Config{Listen: listen})
		require.True(t, l.LocalAddr().Addr().IsUnspecified(), listen)
	}
}

// A link bound to all addresses reaches one bound to any address, in both families.
func TestWildcard(t *testing.T) {
	for _, other := range []string{"127.0.0.1", "::1", "", "0.0.0.0"} {
		t.Run(other, func(t *testing.T) {
			if other == "::1" {
				needIPv6(t)
			}
			a, b := open(t, ether.Config{}), open(t, ether.Config{Listen: other})
			toB, toA := join(t, a, b)
			inA, inB := receive(a, 4), receive(b, 4)
			fa, fb := a.Acquire(50), b.Acquire(60)
			fa.Peer, fb.Peer = toB, toA
			send(t, a, []microproto.Frame{fa})
			send(t, b, []microproto.Frame{fb})
			require.Len(t, inB.next(t), 50)
			require.Len(t, inA.next(t), 60)
		})
	}
}

func TestFamiliesDiffer(t *testing.T) {
	needIPv6(t)
	a, b := open(t, ether.Config{Listen: "127.0.0.1"}), open(t, ether.Config{Listen: "::1"})
	o, err := b.Offer("a")
	require.NoError(t, err)
	_, err = a.Accept(o)
	require.ErrorContains(t, err, "this end supports IPv4 only")
	require.ErrorContains(t, err, "--listen")
}

func TestAcceptTwiceIsOneAddress(t *testing.T) {
	loopback := ether.Config{Listen: "127.0.0.1"}
	a, b, c := open(t, loopback), open(t, ether.Config{}), open(t, loopback)
	first, _ := join(t, a, b)
	other, _ := join(t, a, c)
	again, _ := join(t, a, b)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	require.NotZero(t, first)
}

func TestProbe(t *testing.T) {
	o := ether.Probe()
	t.Logf("%+v", o)
	require.True(t, o.IPv4 || o.IPv6, o.Problem)
	require.Positive(t, o.LoopbackFrame)
	if o.GSO {
		require.True(t, o.Batch)
	}
}
