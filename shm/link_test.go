package shm

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// join connects two links and waits until they have met.
func join(tb testing.TB, a, b *Link) (toB, toA microproto.LinkAddr) {
	tb.Helper()
	accept := func(at, of *Link) microproto.LinkAddr {
		offer, err := of.Offer(at.config.Name)
		require.NoError(tb, err)
		addr, err := at.Accept(offer)
		require.NoError(tb, err)
		return addr
	}
	toA, toB = accept(b, a), accept(a, b)
	await.Until(tb, func() bool { return a.isConnected(toB) && b.isConnected(toA) }, "the ends to meet")
	return toB, toA
}

func (l *Link) isConnected(addr microproto.LinkAddr) bool {
	defer l.lockAll()()
	p := l.peer(addr)
	return p != nil && p.bell != nil
}

func (l *Link) stateOf(addr microproto.LinkAddr) (peerState, error) {
	defer l.lockAll()()
	return l.peer(addr).state, l.peer(addr).failure
}

func frame(to microproto.LinkAddr, b []byte) microproto.Frame {
	f := microproto.NewBuffer(b, nil).Frame(to, 0, len(b))
	f.Mode = microproto.ModeSynchronous
	return f
}

func value(to microproto.LinkAddr, id uint64, b []byte) microproto.Frame {
	f := frame(to, b)
	f.Mode, f.Value = microproto.ModeAsynchronous, id
	return f
}

func sendOne(tb testing.TB, l *Link, f microproto.Frame) {
	tb.Helper()
	n, err := l.Send([]microproto.Frame{f})
	require.NoError(tb, err)
	require.Equal(tb, 1, n)
}

// pattern is a value of n bytes with a version in every word.
func pattern(version uint64, n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], version)
	}
	return b
}

// versionOf returns the version of a pattern, and false if the frame mixes versions.
func versionOf(b []byte) (uint64, bool) {
	v := binary.LittleEndian.Uint64(b)
	for i := 0; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != v {
			return 0, false
		}
	}
	return v, true
}

// While one end writes values without pause, the other reads whole ones only, each newer than the last, and the last
// one of all.
func TestValuesAreNeverTorn(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			const versions, bytes, ids = 3000, 4096, 3
			go func() {
				for v := uint64(1); v <= versions; v++ {
					for id := uint64(1); id <= ids; id++ {
						_, _ = a.Send([]microproto.Frame{value(toB, id, pattern(v<<8|id, bytes))})
					}
				}
			}()
			var last [ids + 1]uint64
			batch := make([]microproto.Frame, 4)
			for last[1] < versions || last[2] < versions || last[3] < versions {
				n, err := b.AwaitRecv(batch)
				require.NoError(t, err)
				for i := range batch[:n] {
					v, whole := versionOf(batch[i].Data)
					require.True(t, whole, "a frame of two versions")
					require.Less(t, last[v&255], v>>8)
					last[v&255] = v >> 8
					batch[i].Release()
				}
			}
		})
	}
}

// An end that does not read blocks no values, and finds the newest when it reads again.
func TestStoppedReaderBlocksNobody(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			for { // the lane is full
				n, err := a.Send([]microproto.Frame{frame(toB, make([]byte, 1000))})
				require.NoError(t, err)
				if n == 0 {
					break
				}
			}
			for v := uint64(1); v <= 1000; v++ {
				for id := uint64(1); id <= DefaultValues; id++ {
					sendOne(t, a, value(toB, id, pattern(v, 64)))
				}
			}
			newest := map[int]uint64{}
			batch := make([]microproto.Frame, 16)
			for len(newest) < DefaultValues {
				n, err := b.AwaitRecv(batch)
				require.NoError(t, err)
				for i := range batch[:n] {
					if len(batch[i].Data) == 64 {
						v, _ := versionOf(batch[i].Data)
						newest[len(newest)] = v
					}
					batch[i].Release()
				}
			}
			for _, v := range newest {
				require.EqualValues(t, 1000, v)
			}
		})
	}
}

// Sending and receiving allocate nothing, in the lane and in slots, with and without a body.
func TestNoAllocationPerFrame(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, _ := join(t, a, b)
			body := make([]byte, 2000)
			out, in := make([]microproto.Frame, 1), make([]microproto.Frame, 4)
			for _, c := range []struct {
				size int
				mode microproto.Mode
				id   uint64
				body []byte
			}{
				{8, microproto.ModeSynchronous, 0, nil}, {20000, microproto.ModeSynchronous, 0, nil},
				{60, microproto.ModeSynchronous, 0, body}, {60, microproto.ModeAsynchronous, 7, body},
				{60, microproto.ModeAsynchronous, 0, nil},
			} {
				trip := func() {
					out[0] = a.Acquire(c.size)
					out[0].Peer, out[0].Mode, out[0].Value = toB, c.mode, c.id
					if c.body != nil {
						out[0].Body, out[0].Header = c.body, c.size
					}
					if n, err := a.Send(out); n != 1 || err != nil {
						t.Fatal(n, err)
					}
					n, err := b.TryRecv(in)
					if n != 1 || err != nil || len(in[0].Data) != c.size+len(c.body) {
						t.Fatal(n, err, len(in[0].Data))
					}
					in[0].Release()
				}
				trip()
				require.Zero(t, testing.AllocsPerRun(200, trip), "%+v", c)
			}
		})
	}
}

type countingBell struct{ rings int }

func (b *countingBell) ring()  { b.rings++ }
func (b *countingBell) close() {}

// connectedToNobody returns a link and its connection with an end that this test plays.
func connectedToNobody(t *testing.T, before func(a *Link, addr microproto.LinkAddr)) (
	a *Link, addr microproto.LinkAddr, other []byte, bell *countingBell,
) {
	m := NewMemory()
	a, err := Open(Config{Name: "a", Memory: m})
	require.NoError(t, err)
	b, err := Open(Config{Name: "b", Memory: m})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(a.Close(), b.Close())) })
	offer, err := b.Offer("a")
	require.NoError(t, err)
	addr, err = a.Accept(offer) // b has not accepted: they do not meet
	require.NoError(t, err)
	before(a, addr)
	other, bell = alignedBytes(a.layout.total), &countingBell{}
	word(other, magicAt).Store(layoutMagic)
	defer a.lockAll()()
	require.NoError(t, a.peer(addr).connected(outbox{bytes: other}, bell))
	return a, addr, other, bell
}

// An end that polls learns that there is room in the lane without being woken.
func TestPollingFindsRoom(t *testing.T) {
	a, addr, other, _ := connectedToNobody(t, func(*Link, microproto.LinkAddr) {})
	sent := 0
	for n := 1; n == 1; sent += n {
		var err error
		n, err = a.Send([]microproto.Frame{frame(addr, make([]byte, DefaultFrameBytes))})
		require.NoError(t, err)
	}
	calls := 0
	a.Writable(func() { calls++ })
	batch := make([]microproto.Frame, 4)
	for range 3 {
		n, err := a.TryRecv(batch)
		require.NoError(t, err)
		require.Zero(t, n)
		require.Zero(t, calls)
	}
	word(other, tailAt).Store(uint64(sent) * linesOf(DefaultFrameBytes)) // it has read everything
	for range 3 {
		_, err := a.TryRecv(batch)
		require.NoError(t, err)
		require.Equal(t, 1, calls)
	}
}

// An end that has written before it was connected wakes the other end, which may have been connected earlier, have
// found nothing and have fallen asleep.
func TestFramesBeforeTheMeetingWake(t *testing.T) {
	for _, early := range []bool{false, true} {
		_, _, _, bell := connectedToNobody(t, func(a *Link, addr microproto.LinkAddr) {
			if early {
				sendOne(t, a, frame(addr, []byte{1}))
			}
		})
		require.Equal(t, early, bell.rings == 1)
	}
}

// A closed end is reported at once at the other, whose frames are then dropped, and a new exchange of offers connects
// again.
func TestCloseIsReported(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			events := make(chan microproto.LinkEvent, 8)
			a.Watch(func(e microproto.LinkEvent) { events <- e })
			toB, _ := join(t, a, b)
			old, err := b.Offer("a")
			require.NoError(t, err)
			require.NoError(t, b.Close())
			e := <-events
			require.Equal(t, toB, e.Peer)
			require.False(t, e.Up)
			require.ErrorIs(t, e.Err, errGone)
			sendOne(t, a, frame(toB, []byte("dropped")))
			require.EqualValues(t, 1, a.Stats().Discarded)
			_, err = a.Accept(old)
			require.ErrorIs(t, err, ErrDown)
			b = open(t, Config{Name: "b"})
			toB, _ = join(t, a, b)
			sendOne(t, a, frame(toB, []byte("again")))
			batch := make([]microproto.Frame, 4)
			n, err := b.AwaitRecv(batch)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, "again", string(batch[0].Data))
		})
	}
}

// Forget frees the connection at both ends.
func TestForget(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			open := kind()
			a, b := open(t, Config{Name: "a"}), open(t, Config{Name: "b"})
			toB, toA := join(t, a, b)
			a.Forget(toB)
			a.Forget(toB)
			await.Until(t, func() bool { s, _ := b.stateOf(toA); return s == peerDown }, "the other end to notice")
			_, err := a.Send([]microproto.Frame{frame(toB, []byte{1})})
			require.ErrorContains(t, err, "forgotten")
			b.Forget(toA)
			again, _ := join(t, a, b)
			require.NotEqual(t, toB, again)
		})
	}
}

// An end that writes anything at all into its outbox, at any time, costs its own connection at most.
func TestHostileOutbox(t *testing.T) {
	for _, kind := range kinds() {
		for seed := range uint64(20) {
			open := kind()
			a, b, c := open(t, Config{Name: "a"}), open(t, Config{Name: "b"}), open(t, Config{Name: "c"})
			toB, toA := join(t, a, b)
			toC, _ := join(t, a, c)
			r := rand.New(rand.NewPCG(seed, 0))
			l := a.layout
			batch := make([]microproto.Frame, 8)
			for range 1000 {
				if s, _ := a.stateOf(toB); s == peerDown {
					a.Forget(toB)
					b.Forget(toA)
					toB, toA = join(t, a, b)
				}
				b.tx.Lock()
				if p := b.peer(toA); p.state != peerDown {
					scribble(r, l, p.out.bytes)
				}
				b.tx.Unlock()
				for id := range uint64(3) {
					_, _ = a.Send([]microproto.Frame{value(toB, id+1, pattern(1, 8)), frame(toB, make([]byte, 100))})
				}
				n, err := a.TryRecv(batch)
				require.NoError(t, err)
				for i := range batch[:n] {
					require.LessOrEqual(t, len(batch[i].Data), l.largest())
					batch[i].Release()
				}
			}
			sendOne(t, a, frame(toC, []byte("still here")))
			for {
				n, err := c.AwaitRecv(batch)
				require.NoError(t, err)
				if n == 1 {
					require.Equal(t, "still here", string(batch[0].Data))
					break
				}
			}
		}
	}
}

// scribble writes a random word: anything, or something near what a correct end writes.
func scribble(r *rand.Rand, l *layout, outbox []byte) {
	w := r.Uint64()
	if r.IntN(2) == 0 {
		w = commitWord(r.Uint64N(64), kind(r.IntN(5)), r.IntN(1<<r.IntN(31)))
	}
	if r.IntN(4) == 0 {
		w = r.Uint64N(64)
	}
	var at int
	switch r.IntN(4) {
	case 0:
		at = 8 * r.IntN(wordsEnd/8)
	case 1:
		at = l.latest + 8*r.IntN((l.lane-l.latest)/8)
	case 2:
		at = l.lane + lineBytes*r.IntN(64)
	default:
		at = l.lane + 8*r.IntN((l.total-l.lane)/8)
	}
	word(outbox, at).Store(w)
}

// descriptorsAndMappings counts the open files of this process and its mappings of outboxes.
func descriptorsAndMappings(tb testing.TB) (files, mappings int) {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(tb, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(tb, err)
	return len(fds), strings.Count(string(maps), "memfd:p2pdc")
}

// Connections that end in any way leave no descriptor and no mapping behind.
func TestNothingLeaks(t *testing.T) {
	c := Config{Name: "a", FrameBytes: 512, Values: 1, LaneBytes: 1 << 13}
	a, err := Open(c)
	require.NoError(t, err)
	defer a.Close()
	var failed atomic.Int64
	a.Watch(func(microproto.LinkEvent) { failed.Add(1) })
	files, mappings := descriptorsAndMappings(t)
	for i := range 200 {
		c.Name = []string{"b", "A"}[i%2] // either end dials
		b, err := Open(c)
		require.NoError(t, err)
		switch i % 4 {
		case 3: // never met: only one end has accepted
			offer, err := b.Offer("a")
			require.NoError(t, err)
			addr, err := a.Accept(offer)
			require.NoError(t, err)
			require.NoError(t, b.Close())
			a.Forget(addr)
		case 2:
			toB, _ := join(t, a, b)
			a.Forget(toB)
			require.NoError(t, b.Close())
		default:
			toB, _ := join(t, a, b)
			require.NoError(t, b.Close())
			await.Until(t, func() bool { s, _ := a.stateOf(toB); return s == peerDown }, "the end to be noticed")
			a.Forget(toB)
		}
	}
	await.Until(t, func() bool {
		f, m := descriptorsAndMappings(t)
		return f <= files && m <= mappings
	}, "every descriptor and mapping to be closed")
	require.GreaterOrEqual(t, failed.Load(), int64(100))
}
