//go:build linux

package stream

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// join exchanges offers and returns each end's address for the other.
func join(tb testing.TB, a, b *Link) (toB, toA microproto.LinkAddr) {
	tb.Helper()
	accept := func(at, of *Link) microproto.LinkAddr {
		offer, err := of.Offer(at.config.Name)
		require.NoError(tb, err)
		addr, err := at.Accept(offer)
		require.NoError(tb, err)
		return addr
	}
	return accept(a, b), accept(b, a)
}

func frame(to microproto.LinkAddr, b []byte) microproto.Frame {
	return microproto.NewBuffer(b, nil).Frame(to, 0, len(b))
}

// sendOne sends a frame, waiting for room.
func sendOne(tb testing.TB, l *Link, f microproto.Frame) {
	tb.Helper()
	for {
		n, err := l.Send([]microproto.Frame{f})
		require.NoError(tb, err)
		if n == 1 {
			return
		}
		room := make(chan struct{})
		l.Writable(func() { close(room) })
		<-room
	}
}

// receive returns the contents of the next count frames.
func receive(tb testing.TB, l *Link, count int) (out [][]byte) {
	tb.Helper()
	batch := make([]microproto.Frame, 8)
	for len(out) < count {
		n, err := l.Recv(batch)
		require.NoError(tb, err)
		for i := range n {
			out = append(out, bytes.Clone(batch[i].Data))
			batch[i].Release()
		}
	}
	return out
}

func events(l *Link) chan microproto.LinkEvent {
	out := make(chan microproto.LinkEvent, 16)
	l.Watch(func(e microproto.LinkEvent) {
		if !e.Up {
			out <- e
		}
	})
	return out
}

// foreign is an end that a test plays by hand: it dials the link under test.
type foreign struct {
	net.Conn
	addr microproto.LinkAddr // at the link under test
}

// tester is what a test and a property test have in common.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(f func())
}

// hello returns the greeting of a foreign end, after the link has accepted its offer.
func hello(tb tester, l *Link) (to netip.AddrPort, greeting []byte, addr microproto.LinkAddr) {
	tb.Helper()
	b, err := l.Offer("0") // a lower name than that of the link: it dials
	require.NoError(tb, err)
	theirs, err := decodeOffer(b)
	require.NoError(tb, err)
	own := offer{offerFields: theirs.offerFields, name: "0", group: theirs.group, addresses: theirs.addresses}
	own.Token[0]++
	addr, err = l.Accept(own.append(nil))
	require.NoError(tb, err)
	greeting = append(append([]byte(magic), theirs.Token[:]...), own.Token[:]...)
	return theirs.addresses[0], greeting, addr
}

func meet(tb tester, l *Link) foreign {
	tb.Helper()
	to, greeting, addr := hello(tb, l)
	conn, err := net.Dial("tcp", to.String())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write(greeting)
	require.NoError(tb, err)
	answer := make([]byte, answerBytes)
	_, err = io.ReadFull(conn, answer)
	require.NoError(tb, err)
	require.Equal(tb, append([]byte(magic), greeting[len(magic)+len(token{}):]...), answer)
	return foreign{conn, addr}
}

// encode returns frames as they travel.
func encode(frames [][]byte) (out []byte) {
	for _, f := range frames {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(f))), f...)
	}
	return out
}

// When the other end does not read, Send stops within a frame. What the kernel did not take goes first later: every
// frame arrives once, whole and in order.
func TestFullConnection(t *testing.T) {
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	toB, _ := join(t, a, b)
	sendOne(t, a, frame(toB, []byte("ready")))
	receive(t, b, 1)
	numbered := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 100+i%20_000) }
	sent, kept := 0, 0
	for range 5 {
		begin := sent
		for full := false; !full; {
			batch := make([]microproto.Frame, 0, 7)
			for i := range cap(batch) {
				batch = append(batch, frame(toB, numbered(sent+i)))
			}
			n, err := a.Send(batch)
			require.NoError(t, err)
			sent += n
			full = n < len(batch)
		}
		a.mu.Lock()
		if a.peers[0].outgoing.waiting() {
			kept++
		}
		a.mu.Unlock()
		room := make(chan struct{})
		a.Writable(func() { close(room) })
		for i, got := range receive(t, b, sent-begin) {
			require.True(t, bytes.Equal(numbered(begin+i), got), "frame %d", begin+i)
		}
		<-room
	}
	require.NotZero(t, kept, "Send never stopped within a frame")
	require.EqualValues(t, 5, a.Stats().SendFull)
}

// If the kernel takes only a part of the last frame of a Send, the link sends the rest when there is room. That needs
// neither another Send nor Writable.
func TestRestOfTheLastFrame(t *testing.T) {
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	toB, _ := join(t, a, b)
	sendOne(t, a, frame(toB, []byte("ready")))
	receive(t, b, 1)
	sent := 0
	for waits := false; !waits; {
		sendOne(t, a, frame(toB, bytes.Repeat([]byte{byte(sent)}, 64<<10)))
		sent++
		a.mu.Lock()
		waits = a.peers[0].outgoing.waiting()
		a.mu.Unlock()
	}
	got := make(chan [][]byte, 1)
	go func() { got <- receive(t, b, sent) }()
	await.Until(t, func() bool { return len(got) == 1 }, "%d frames", sent)
	for i, f := range <-got {
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, 64<<10), f), "frame %d", i)
	}
	await.Until(t, func() bool { // the next one makes its own goroutine
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.peers[0].sendsRest
	}, "the goroutine to end")
}

// A connection that ends after any byte gives the frames that have arrived whole, and nothing else. It is reported, and
// new offers make another.
func TestCutAtAnyByte(t *testing.T) {
	l := open(t, Config{Name: "l"})
	down := events(l)
	frames := [][]byte{[]byte("first"), []byte("a second frame"), bytes.Repeat([]byte("third"), shareBytes/5+1)}
	all := encode(frames)
	whole := len(all) - len(frames[2])
	for cut := range len(all) {
		if cut > whole && cut < len(all)-2 && cut%4999 > 0 {
			continue // the middle of the long frame
		}
		f := meet(t, l)
		_, err := f.Write(all[:cut])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		want := 0
		for have := cut; want < len(frames) && have >= prefixBytes+len(frames[want]); want++ {
			have -= prefixBytes + len(frames[want])
		}
		require.Equal(t, frames[:want], append([][]byte{}, receiveUntilDown(t, l, down, f.addr)...), "cut at %d", cut)
	}
	f := meet(t, l)
	_, err := f.Write(all)
	require.NoError(t, err)
	require.Equal(t, frames, receive(t, l, len(frames)))
}

// receiveUntilDown returns the frames that arrive until a connection is reported as down.
func receiveUntilDown(t *testing.T, l *Link, down chan microproto.LinkEvent, addr microproto.LinkAddr) (out [][]byte) {
	t.Helper()
	batch := make([]microproto.Frame, 4)
	for {
		n, err := l.TryRecv(batch)
		require.NoError(t, err)
		for i := range n {
			out = append(out, bytes.Clone(batch[i].Data))
			batch[i].Release()
		}
		select {
		case e := <-down:
			require.Equal(t, addr, e.Peer)
			require.False(t, e.Up)
			require.Error(t, e.Err)
			return out
		default:
		}
	}
}

// Connections without a right to one are refused and counted, and the rightful one still passes.
func TestUninvitedConnections(t *testing.T) {
	l := open(t, Config{Name: "l"})
	to, greeting, addr := hello(t, l)
	for i := range 3 {
		bad := bytes.Clone(greeting)
		bad[[]int{0, len(magic), len(magic) + len(token{})}[i]] ^= 1 // the magic, either token
		conn, err := net.Dial("tcp", to.String())
		require.NoError(t, err)
		_, err = conn.Write(bad)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "it was not refused")
		_ = conn.Close()
	}
	for range 2 * maxHandshakes { // silent ones: those beyond the bound are closed at once
		conn, err := net.Dial("tcp", to.String())
		require.NoError(t, err)
		defer conn.Close()
	}
	await.Until(t, func() bool { return l.Stats().Refused >= 3+maxHandshakes }, "silent connections to be refused")
	require.Len(t, l.hands, maxHandshakes)
	for range maxHandshakes { // stands for the time-out of the silent ones
		<-l.hands
	}
	conn, err := net.Dial("tcp", to.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(append(bytes.Clone(greeting), encode([][]byte{[]byte("welcome")})...))
	require.NoError(t, err)
	batch := make([]microproto.Frame, 1)
	for n := 0; n == 0; {
		n, err = l.Recv(batch)
		require.NoError(t, err)
	}
	require.Equal(t, "welcome", string(batch[0].Data))
	require.Equal(t, addr, batch[0].Peer)
	batch[0].Release()
	for range maxHandshakes { // for the goroutines that will take them out
		l.hands <- struct{}{}
	}
}

// The connections of an end that closes are reported at the other one, whose frames are then dropped; after new offers
// frames pass again.
func TestPeerThatCloses(t *testing.T) {
	a := open(t, Config{Name: "a"})
	down := events(a)
	for range 3 {
		b, err := Open(Config{Name: "b", Listen: "127.0.0.1"})
		require.NoError(t, err)
		toB, toA := join(t, a, b)
		sendOne(t, a, frame(toB, []byte("hello")))
		require.Equal(t, "hello", string(receive(t, b, 1)[0]))
		sendOne(t, b, frame(toA, []byte("hello")))
		require.Equal(t, "hello", string(receive(t, a, 1)[0]))
		require.NoError(t, b.Close())
		require.Empty(t, receiveUntilDown(t, a, down, toB))
		n, err := a.Send([]microproto.Frame{frame(toB, []byte("late"))})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.EqualValues(t, 3, a.Stats().Discarded)
}

// An end that does not dial, or cannot be dialled, is reported within the time-out.
func TestEndsThatDoNotMeet(t *testing.T) {
	a := open(t, Config{Name: "a", Timeout: 50 * time.Millisecond})
	down := events(a)
	gone := open(t, Config{Name: "b"})
	offer, err := gone.Offer("a")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	_, err = a.Accept(offer) // a dials
	require.NoError(t, err)
	require.ErrorContains(t, (<-down).Err, "cannot connect")
	_, err = a.Accept(offer)
	require.ErrorIs(t, err, ErrDown)
	_, err = a.Offer("b") // for another attempt, which needs a new offer of the other end
	require.NoError(t, err)
	_, err = a.Accept(offer)
	require.ErrorIs(t, err, ErrDown)
	require.NotContains(t, err.Error(), "%!")
	lower := open(t, Config{Name: "0"})
	offer, err = lower.Offer("a")
	require.NoError(t, err)
	_, err = a.Accept(offer) // a waits
	require.NoError(t, err)
	require.ErrorContains(t, (<-down).Err, "has not connected")
}

func TestRefusedOffers(t *testing.T) {
	a := open(t, Config{Name: "a", Group: "east"})
	refused := func(c Config, want string) {
		t.Helper()
		offer, err := open(t, c).Offer("a")
		require.NoError(t, err)
		_, err = a.Accept(offer)
		require.ErrorContains(t, err, want)
	}
	refused(Config{Name: "b", Group: "west"}, "different groups")
	refused(Config{Name: "a", Group: "east"}, "same name")
	refused(Config{Name: "b", Group: "east", FrameBytes: 1000}, "frames of 1000 bytes")
	for _, c := range []Config{
		{}, {Name: "a", FrameBytes: 1}, {Name: "a", Timeout: -1}, {Name: "a", PortLow: 5, PortHigh: 4},
		{Name: "a", Listen: "192.0.2.1"}, {Name: "a", BufferBytes: -1},
	} {
		_, err := Open(c)
		require.Error(t, err, "%+v", c)
	}
	to, _ := join(t, a, open(t, Config{Name: "c", Group: "east"}))
	for _, f := range []microproto.Frame{
		{Peer: to, Data: make([]byte, DefaultFrameBytes+1)},
		{Peer: to + 1, Data: []byte("x")}, {Peer: to},
	} {
		_, err := a.Send([]microproto.Frame{f})
		require.Error(t, err)
	}
}

// A frame costs no allocation, small or long, gathered or not.
func TestNoAllocationPerFrame(t *testing.T) {
	a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
	toB, _ := join(t, a, b)
	body := make([]byte, 60_000)
	out, in := make([]microproto.Frame, 3), make([]microproto.Frame, 4)
	round := func() {
		for i, n := range []int{20, 5000, 40} {
			out[i] = a.Acquire(n)
			out[i].Peer = toB
		}
		out[2].Body, out[2].Header = body, 40
		for k := 0; k < len(out); {
			n, err := a.Send(out[k:])
			require.NoError(t, err)
			k += n
		}
		for got := 0; got < len(out); {
			n, err := b.TryRecv(in)
			require.NoError(t, err)
			for i := range n {
				in[i].Release()
			}
			got += n
		}
	}
	for range 20 {
		round()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(200, round), 0.1)
}

// Connections leave no descriptors behind, whichever end gives them up.
func TestNothingLeaks(t *testing.T) {
	count := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	a := open(t, Config{Name: "a"})
	down := events(a)
	before := count()
	for range 20 {
		b, err := Open(Config{Name: "b", Listen: "127.0.0.1"})
		require.NoError(t, err)
		toB, toA := join(t, a, b)
		sendOne(t, a, frame(toB, []byte("hello")))
		receive(t, b, 1)
		b.Forget(toA)
		receiveUntilDown(t, a, down, toB)
		require.NoError(t, b.Close())
	}
	await.Until(t, func() bool { return count() <= before }, "descriptors to be closed")
}

func FuzzOffer(f *testing.F) {
	o := offer{name: "peer-1", group: "g", addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:5"),
		netip.MustParseAddrPort("[2001:db8::1]:65535")}}
	o.Version = offerVersion
	f.Add(o.append(nil))
	f.Add([]byte{offerVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOffer(b)
		if err == nil {
			require.Equal(t, b, o.append(nil))
		}
	})
}

// The link reports that it has met the other end, once for each connection.
func TestMeetingIsReported(t *testing.T) {
	l := open(t, Config{Name: "l"})
	require.True(t, l.Caps(microproto.ModeSynchronous).ConnectsLater)
	met := make(chan microproto.LinkEvent, 16)
	l.Watch(func(e microproto.LinkEvent) { met <- e })
	for range 2 {
		f := meet(t, l)
		require.Equal(t, microproto.LinkEvent{Peer: f.addr, Up: true}, <-met)
		require.NoError(t, f.Close())
		require.Empty(t, receiveUntilDown(t, l, met, f.addr))
	}
}

// A link that listens late has no port before its first offer, and connects like any other afterwards.
func TestListenLate(t *testing.T) {
	a, b := open(t, Config{Name: "a", ListenLate: true}), open(t, Config{Name: "b"})
	require.Nil(t, a.listener)
	join(t, a, b)
	require.NotNil(t, a.listener)
	late, err := Open(Config{Name: "c", ListenLate: true, Listen: "192.0.2.1"})
	require.NoError(t, err)
	_, err = late.Offer("a")
	require.Error(t, err)
	require.NoError(t, late.Close())
	_, err = late.Offer("a")
	require.ErrorIs(t, err, net.ErrClosed)
}
