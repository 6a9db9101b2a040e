package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// end is one end of a protected session; the test is the upper composite.
type end struct {
	t     require.TestingT
	c     *microproto.Composite
	aead  *AEAD
	flow  *Flow
	mem   *mptest.Frames
	plain *mptest.Frames // of the composite above
	out   []microproto.Output
}

const (
	testMTU = 1472
	room    = NumberBytes + 4
)

// mark is a micro-protocol whose header bytes are authenticated too.
type mark struct{ f microproto.Field }

func (*mark) Name() string { return "Mark" }
func (k *mark) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	k.f = b.Header(4)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Early, func(_ *microproto.Exec, m *microproto.Message) {
		copy(k.f.Bytes(m), "mark")
	})
	return nil
}

func newEnd(t require.TestingT, f *Flow, out, in Secret) *end {
	e := &end{t: t, flow: f, mem: &mptest.Frames{}, plain: &mptest.Frames{Headroom: room}}
	e.aead = NewAEAD(f, out, in)
	var err error
	e.c, err = microproto.NewComposite(microproto.Config{Name: "seal", MTU: testMTU, Train: 65507, Frames: e.mem},
		&mark{}, e.aead, NewAntiReplay(f))
	require.NoError(t, err)
	require.NoError(t, e.c.Open(0))
	return e
}

func secret(s string) Secret { return sha256.Sum256([]byte(s)) }

func newPair(t require.TestingT) (a, b *end) {
	return newEnd(t, &Flow{}, secret("a to b"), secret("b to a")), newEnd(t, &Flow{}, secret("b to a"),
		secret("a to b"))
}

// seal submits a payload as an upper composite does, and returns the frame.
func (e *end) seal(payload []byte) []byte {
	f := e.plain.Acquire(len(payload) + TagBytes)
	f = f.Slice(0, len(payload))
	copy(f.Data, payload)
	require.NoError(e.t, e.c.SubmitFrame(0, f))
	e.out = e.c.Drain(e.out[:0])
	require.Len(e.t, e.out, 1)
	wire := bytes.Clone(e.out[0].Frame.Data)
	e.out[0].Frame.Release()
	return wire
}

// open passes a frame to the end and returns its payload, nil if it was refused.
func (e *end) open(wire []byte) []byte {
	f := microproto.NewBuffer(bytes.Clone(wire), nil).Frame(1, 0, len(wire))
	require.NoError(e.t, e.c.Input(0, f))
	e.out = e.c.Drain(e.out[:0])
	if len(e.out) == 0 {
		return nil
	}
	up := e.c.RecycleFrame(e.out[0].Message)
	defer up.Release()
	return append([]byte{}, up.Data...)
}

func (e *end) balanced() {
	n := e.c.Counters()
	require.True(e.t, n.Balanced(), "%+v", n)
	require.Zero(e.t, n.Live)
	require.Equal(e.t, e.plain.Acquired, e.plain.Released)
}

func TestSealAndOpen(t *testing.T) {
	a, b := newPair(t)
	for n := 0; n <= testMTU-room-TagBytes; n += 1 + n/3 {
		payload := bytes.Repeat([]byte{byte(n), 0x5a}, n/2+1)[:n]
		wire := a.seal(payload)
		require.Len(t, wire, room+n+TagBytes)
		require.Equal(t, "mark", string(wire[:4]))
		if n > 8 {
			require.NotContains(t, string(wire), string(payload[:8]))
		}
		require.Equal(t, payload, b.open(wire))
		require.Equal(t, []byte("back"), a.open(b.seal([]byte("back"))))
	}
	require.Zero(t, b.flow.Counts())
	require.Equal(t, 1, a.mem.Acquired, "sealed in place, in the frame of the composite above, but for the empty one")
	a.balanced()
	b.balanced()
}

// The frames are those of AES-128-GCM with keys of HKDF-SHA-256, computed here independently from
// docs/wire.md.
func TestBytesOnTheWire(t *testing.T) {
	a, _ := newPair(t)
	a.aead.every = 3
	s := secret("a to b")
	for n := range uint64(8) {
		wire := a.seal([]byte("a halo of the membrane"))
		k, err := hkdf.Expand(sha256.New, s[:], "p2pdc seal key "+string(binary.BigEndian.AppendUint64(nil, n/3)), 28)
		require.NoError(t, err)
		block, err := aes.NewCipher(k[:16])
		require.NoError(t, err)
		gcm, err := cipher.NewGCM(block)
		require.NoError(t, err)
		nonce := bytes.Clone(k[16:])
		nonce[11] ^= byte(n)
		require.Equal(t, n, binary.BigEndian.Uint64(wire[4:]))
		plain, err := gcm.Open(nil, nonce, wire[12:], wire[:12])
		require.NoError(t, err)
		require.Equal(t, "a halo of the membrane", string(plain))
	}
}

func TestEveryBitCounts(t *testing.T) {
	a, b := newPair(t)
	wire := a.seal([]byte("forty bytes that nobody may change, ever"))
	before := *b.flow
	for i := range wire {
		for bit := range 8 {
			wire[i] ^= 1 << bit
			require.Nil(t, b.open(wire), "byte %d, bit %d", i, bit)
			wire[i] ^= 1 << bit
		}
	}
	require.EqualValues(t, 8*len(wire), b.flow.counts.Forged)
	require.Equal(t, before.window, b.flow.window, "a forged frame has moved the window")
	for n := range wire {
		require.Nil(t, b.open(wire[:n]), "cut at %d", n)
	}
	require.Nil(t, b.open(append(bytes.Clone(wire), 0)), "one byte more")
	require.NotNil(t, b.open(wire), "the frame itself")
	b.balanced()
}

func TestReplayedAndReflected(t *testing.T) {
	a, b := newPair(t)
	for range 100 {
		wire := a.seal([]byte("once"))
		require.NotNil(t, b.open(wire))
		require.Nil(t, b.open(wire), "again")
		require.Nil(t, a.open(wire), "sent back")
	}
	require.Equal(t, Counts{Replayed: 100}, b.flow.Counts())
	require.Equal(t, Counts{Forged: 100}, a.flow.Counts())
}

// A frame to which the upper composite keeps a reference, for a retransmission, is not changed.
func TestHeldFrameIsNotTouched(t *testing.T) {
	a, b := newPair(t)
	buffer := microproto.NewBuffer(bytes.Repeat([]byte{7}, 200), nil)
	held := buffer.Frame(0, 50, 100)
	for range 3 {
		require.NoError(t, a.c.SubmitFrame(0, held.Retain()))
		out := a.c.Drain(nil)
		require.Equal(t, bytes.Repeat([]byte{7}, 200), buffer.Bytes)
		require.Equal(t, bytes.Repeat([]byte{7}, 100), b.open(out[0].Frame.Data))
		out[0].Frame.Release()
	}
	require.Equal(t, 3, a.mem.Acquired)
	require.Equal(t, 3, a.mem.Released)
}

// Two transmissions of the same bytes are unrelated except for their length.
func TestEveryTransmissionHasItsOwnNumber(t *testing.T) {
	a, b := newPair(t)
	seen := map[uint64]bool{}
	var last []byte
	for range 1000 {
		wire := a.seal([]byte("the same segment, sent again"))
		n := binary.BigEndian.Uint64(wire[4:])
		require.False(t, seen[n], "number %d is used twice", n)
		seen[n] = true
		if last != nil {
			require.NotEqual(t, last[room:room+16], wire[room:room+16])
		}
		last = wire
		require.NotNil(t, b.open(wire))
	}
}

// The numbers continue with new secrets, and frames sealed under the old ones do not pass any
// more.
func TestNewKeys(t *testing.T) {
	a, b := newPair(t)
	old, late := a.seal([]byte("epoch 1")), a.seal([]byte("epoch 1, late"))
	require.NotNil(t, b.open(old))
	sent := a.flow.sent
	a, b = newEnd(t, a.flow, secret("a to b, 2"), secret("b to a, 2")), newEnd(t, b.flow, secret("b to a, 2"),
		secret("a to b, 2"))
	require.Nil(t, b.open(old))
	require.Nil(t, b.open(late))
	require.Equal(t, Counts{Replayed: 1, Forged: 1}, b.flow.Counts())
	wire := a.seal([]byte("epoch 2"))
	require.Equal(t, sent, binary.BigEndian.Uint64(wire[4:]))
	require.NotNil(t, b.open(wire))
}

// Keys change after a number of frames, whatever is lost or late in between. Forged frames of
// other phases change nothing.
func TestPhases(t *testing.T) {
	a, b := newPair(t)
	a.aead.every, b.aead.every = 8, 8
	var late [][]byte
	for i := range 200 {
		wire := a.seal([]byte{byte(i)})
		forged := bytes.Clone(wire)
		binary.BigEndian.PutUint64(forged[4:], uint64(i+1)*7919<<20)
		require.Nil(t, b.open(forged))
		switch {
		case i >= 64 && i < 128: // eight phases are lost
		case i%7 == 3:
			late = append(late, wire)
		default:
			require.Equal(t, []byte{byte(i)}, b.open(wire), "frame %d", i)
		}
		if len(late) == 3 {
			for _, w := range late {
				require.NotNil(t, b.open(w))
			}
			late = nil
		}
	}
}

func TestNumbersUsedUp(t *testing.T) {
	a, b := newPair(t)
	a.flow.sent = MaxNumbers - 1
	require.NotNil(t, b.open(a.seal([]byte("the last one"))))
	err := a.c.SubmitFrame(0, microproto.NewBuffer(make([]byte, 64), nil).Frame(0, 24, 8))
	require.ErrorContains(t, err, "their numbers are used up: open a new session")
	require.Empty(t, a.c.Drain(nil))
	require.EqualValues(t, MaxNumbers, a.flow.sent)
}

func TestNothingIsAllocatedPerFrame(t *testing.T) {
	a, b := newPair(t)
	wires, up := make([]byte, testMTU), make([]byte, 1400)
	buffer := microproto.NewBuffer(make([]byte, 2048), nil)
	received := microproto.NewBuffer(wires, nil)
	one := func() {
		f := buffer.Frame(0, room, 1400+TagBytes)
		f = f.Slice(0, 1400)
		require.NoError(t, a.c.SubmitFrame(0, f))
		a.out = a.c.Drain(a.out[:0])
		n := copy(wires, a.out[0].Frame.Data)
		a.out[0].Frame.Release()
		require.NoError(t, b.c.Input(0, received.Frame(1, 0, n)))
		b.out = b.c.Drain(b.out[:0])
		g := b.c.RecycleFrame(b.out[0].Message)
		copy(up, g.Data)
		g.Release()
	}
	one()
	require.Zero(t, testing.AllocsPerRun(200, one))
}
