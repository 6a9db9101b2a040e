package p2psap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// random is a seeded source of entropy.
func random(seed uint64) Entropy {
	r := rand.NewChaCha8([32]byte{31: byte(seed)})
	return func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint64())
		}
	}
}

// protected configures a node; host "" keeps its own host.
func protected(p Protection, host string, seed uint64) func(*NodeConfig) {
	return func(c *NodeConfig) {
		c.Protect = p
		if p != ProtectNever {
			c.Entropy = random(seed)
		}
		if host != "" {
			c.Host = host
		}
	}
}

func TestProtectedSessions(t *testing.T) {
	never, always, auto := ProtectNever, ProtectAlways, ProtectAuto
	for _, c := range []struct {
		a, b   Protection
		hosts  [2]string
		sealed bool
		says   string
	}{
		{auto, auto, [2]string{}, true, ""},
		{auto, auto, [2]string{"here", "here"}, false, ""},
		{always, always, [2]string{"here", "here"}, true, ""},
		{always, auto, [2]string{}, true, ""},
		{never, never, [2]string{}, false, ""},
		{auto, never, [2]string{"here", "here"}, false, ""},
		{auto, never, [2]string{}, false, "protection: this end has it on (auto), the peer off (never)"},
		{always, never, [2]string{"here", "here"}, false, "protection: this end has it on (always), the peer off (never)"},
		{always, auto, [2]string{"here", "here"}, false, "protection: this end has it on (always), the peer off (auto)"},
	} {
		t.Run(fmt.Sprintf("%v, %v at %q", c.a, c.b, c.hosts), func(t *testing.T) {
			w := newWorld(t, 3)
			a, b := w.add("a", protected(c.a, c.hosts[0], 1)), w.add("b", protected(c.b, c.hosts[1], 2))
			w.connect()
			w.run(20 * time.Millisecond)
			sa, err := a.Open(w.now, "b", syncOptions("s"))
			require.NoError(t, err)
			sb, err := b.Open(w.now, "a", syncOptions("s"))
			require.NoError(t, err)
			w.run(20 * time.Millisecond)
			if c.says != "" {
				require.ErrorContains(t, a.ended[sa], c.says)
				var refused *RefusedError
				require.ErrorAs(t, b.ended[sb], &refused)
				require.Contains(t, refused.Reason, "protection: this end has it off")
				return
			}
			require.Equal(t, SessionOpen, a.state(sa))
			for n, id := range map[*worldNode]SessionID{a: sa, b: sb} {
				i, err := n.Info(id)
				require.NoError(t, err)
				if !c.sealed {
					require.Nil(t, i.Protection)
					continue
				}
				require.Equal(t, []string{"SessionHeader", "AEAD", "AntiReplay"}, i.Protection)
				require.NotContains(t, i.Composition, "AEAD", "it is no part of Table I")
			}
		})
	}
}

func TestProtectionNeedsEntropy(t *testing.T) {
	c := NodeConfig{Name: "a", Catalog: standIns(), Policy: TablePolicy{}, Rails: []Rail{{Link: namedLink{}}},
		Protect: ProtectAlways}
	_, err := NewNode(c)
	require.ErrorContains(t, err, "source of entropy")
	c.Protect = 9
	_, err = NewNode(c)
	require.ErrorContains(t, err, "protection 9")
	c.Protect, c.Entropy = ProtectDefault, random(1)
	n, err := NewNode(c)
	require.NoError(t, err)
	require.Equal(t, ProtectAuto, n.config.Protect)
}

// sealedPair opens a protected session without faults.
func sealedPair(t *testing.T, seed uint64) (w *world, a, b *worldNode, sa, sb SessionID) {
	t.Helper()
	w = newWorld(t, seed)
	a, b = w.add("a", protected(ProtectAuto, "", seed)), w.add("b", protected(ProtectAuto, "", seed+1))
	w.connect()
	w.run(20 * time.Millisecond)
	var err error
	sa, err = a.Open(w.now, "b", syncOptions("s"))
	require.NoError(t, err)
	sb, err = b.Open(w.now, "a", syncOptions("s"))
	require.NoError(t, err)
	w.run(20 * time.Millisecond)
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, b.state(sb))
	return w, a, b, sa, sb
}

// inject puts a frame on a node's link as if it came from the other one.
func (w *world) inject(from, to *worldNode, frame []byte) {
	to.Input(w.now, 0, microproto.NewBuffer(bytes.Clone(frame), nil).Frame(microproto.LinkAddr(from.index+1), 0,
		len(frame)))
	w.settle()
}

// An attacker on the link that reads everything and sends anything changes nothing: every message arrives
// once, in order and unchanged, and every refused frame is counted. It learns nothing but lengths.
func TestAttackerOnTheLink(t *testing.T) {
	for seed := range uint64(20) {
		w, a, b, sa, sb := sealedPair(t, seed)
		r := rand.New(rand.NewPCG(seed, 99))
		secret := []byte("the plain text of this halo, known")
		var seen [][]byte
		var attack func(from, to *worldNode, frame []byte)
		w.tap = func(from, to *worldNode, frame []byte) {
			require.NotContains(t, string(frame), "plain text of this halo")
			kept := bytes.Clone(frame)
			w.after(w.latency+1, func() { seen = append(seen, kept) }) // no faster than the frame itself
			if len(seen) == 0 {
				return
			}
			w.after(time.Duration(r.Int64N(3e6)), func() { attack(from, to, seen[r.IntN(len(seen))]) })
		}
		forged := uint64(0)
		attack = func(from, to *worldNode, frame []byte) {
			was := to.Counters()
			switch r.IntN(7) {
			case 0: // the frame itself, again, either way
				w.inject(from, to, frame)
				return
			case 1: // one bit of it
				frame = bytes.Clone(frame)
				frame[HeaderBytes+r.IntN(len(frame)-HeaderBytes)] ^= 1 << r.IntN(8)
			case 2: // the next number, before the other end has used it
				frame = bytes.Clone(frame)
				binary.BigEndian.PutUint64(frame[HeaderBytes:], uint64(len(seen))+r.Uint64N(1<<40))
			case 3: // not protected at all
				frame = bytes.Clone(frame)
				frame[0] = WireVersion
				w.inject(from, to, frame)
				now := to.Counters()
				require.Equal(t, was.FramesUnprotected+was.FramesUnknown+1, now.FramesUnprotected+now.FramesUnknown)
				return
			case 4: // nothing but a header
				frame = frame[:HeaderBytes+r.IntN(20)]
			case 5: // of another session, of nobody
				frame = bytes.Clone(frame)
				binary.BigEndian.PutUint32(frame[4:], r.Uint32())
			case 6: // to whom it came from, as if it were for that end, under a number that is new
				frame = bytes.Clone(frame)
				binary.BigEndian.PutUint32(frame[4:], uint32(map[*worldNode]SessionID{a: sa, b: sb}[to]))
				binary.BigEndian.PutUint64(frame[HeaderBytes:], 1000+uint64(forged))
			}
			w.inject(from, to, frame)
			forged++
			now := to.Counters()
			refused := func(c NodeCounters) uint64 {
				return c.FramesForged + c.FramesUnknown + c.FramesReplayed + c.FramesMalformed
			}
			require.Equal(t, refused(was)+1, refused(now), "seed %d: a forged frame was not refused", seed)
		}
		sent, got := 0, 0
		for range 300 {
			msg := append(bytes.Clone(secret), byte(sent), byte(sent>>8))
			if _, err := a.Send(w.now, sa, 1, Label(sent), msg); err == nil {
				sent++
			}
			w.run(time.Duration(r.Int64N(2e6)))
			for {
				slot := Slot{Tag: 1, Data: make([]byte, 64)}
				arrival, err := b.Receive(w.now, sb, &slot)
				if err != nil {
					require.ErrorIs(t, err, ErrNothing)
					break
				}
				require.Equal(t, Label(got), Label(arrival.Label), "seed %d", seed)
				require.Equal(t, append(bytes.Clone(secret), byte(got), byte(got>>8)), slot.Data[:arrival.Length])
				got++
			}
			w.settle()
		}
		w.run(50 * time.Millisecond)
		require.Greater(t, got, 100)
		require.Positive(t, forged)
		require.Positive(t, b.Counters().FramesReplayed)
		require.Equal(t, SessionOpen, b.state(sb))
		i, err := b.Info(sb)
		require.NoError(t, err)
		require.EqualValues(t, sent, uint64(got)+b.Unread(sb), "seed %d: %+v", seed, i)
	}
}

// Forged frames do not count as frames of the peer.
func TestForgedFramesDoNotKeepAPeerUp(t *testing.T) {
	w, a, b, sa, _ := sealedPair(t, 5)
	var last []byte
	w.tap = func(from, _ *worldNode, frame []byte) {
		if from == a {
			last = bytes.Clone(frame)
		}
	}
	_, err := a.Send(w.now, sa, 1, 0, []byte("last words"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	require.NotNil(t, last)
	a.muted = true
	last[len(last)-1] ^= 1
	for range 100 {
		w.inject(a, b, last)
		w.run(100 * time.Millisecond)
	}
	state, _ := b.Peer("a")
	require.Equal(t, PeerLost, state)
	require.GreaterOrEqual(t, b.Counters().FramesForged+b.Counters().FramesReplayed, uint64(30))
}

// Every epoch has its own keys in both directions, also when the epoch in the header has wrapped. The two
// ends derive the same keys.
func TestKeysOfEveryEpoch(t *testing.T) {
	w, a, b, sa, sb := sealedPair(t, 8)
	x, y := a.session(sa), b.session(sb)
	var frame []byte
	w.tap = func(from, _ *worldNode, f []byte) {
		if from == a {
			frame = bytes.Clone(f)
		}
	}
	exchange := func() []byte {
		_, err := a.Send(w.now, sa, 1, 1, []byte("same text"))
		require.NoError(t, err)
		w.run(5 * time.Millisecond)
		_, err = b.Receive(w.now, sb, &Slot{Tag: 1, Data: make([]byte, 64)})
		require.NoError(t, err)
		w.run(5 * time.Millisecond)
		return frame
	}
	sent := x.security.flow.Sent()
	for range 300 {
		old := exchange()
		for n, s := range map[*worldNode]*session{a: x, b: y} {
			c := s.channel
			_ = c.sealing.Close(w.now)
			c.number++
			c.header.epoch = uint8(c.number)
			require.NoError(t, n.secure(w.now, s, c))
		}
		old[1] = y.channel.header.epoch // as if the frame were of this epoch
		forged := b.Counters().FramesForged + b.Counters().FramesReplayed
		w.inject(a, b, old)
		require.Equal(t, forged+1, b.Counters().FramesForged+b.Counters().FramesReplayed)
		require.Greater(t, x.security.flow.Sent(), sent, "numbers start anew with new keys")
		sent = x.security.flow.Sent()
	}
	require.Equal(t, x.channel.number, y.channel.number)
	require.EqualValues(t, 300, x.channel.number)
	require.NotEqual(t, a.direction("a", "b", 1, 2, 0), a.direction("a", "b", 1, 2, 256))
	exchange()
}

// A frame that was delayed is not accepted 256 epochs later, when the epoch in the header is the same again.
func TestFrameOf256EpochsAgo(t *testing.T) {
	w, a, b, sa, sb := sealedPair(t, 9)
	var held []byte
	w.tap = func(_, _ *worldNode, f []byte) { held = bytes.Clone(f) }
	w.frameLoss = 1
	_, err := a.Send(w.now, sa, 1, 1, []byte("held back"))
	require.NoError(t, err)
	w.run(5 * time.Millisecond)
	require.NotNil(t, held)
	s := b.session(sb)
	for range 256 {
		c := s.channel
		_ = c.sealing.Close(w.now)
		c.number++
		c.header.epoch = uint8(c.number)
		require.NoError(t, b.secure(w.now, s, c))
	}
	w.inject(a, b, held)
	require.EqualValues(t, 1, b.Counters().FramesForged)
	require.Zero(t, b.Unread(sb))
}
