package microproto_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// ownKeeper owns and holds every segment until release is called.
type ownKeeper struct {
	bit  microproto.HoldBit
	held []*message
	errs []error
}

func (k *ownKeeper) Name() string { return "keeper" }

func (k *ownKeeper) Attach(b *binder) error {
	b.Header(3)
	k.bit = b.HoldBit("keeper")
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(x *exec, m *message) {
		k.errs = append(k.errs, x.Own(m))
		k.held = append(k.held, m)
		x.Hold(m, k.bit)
	})
	return nil
}

// A segment that owns its payload is not affected by later writes of the user. It is copied to one
// frame, once, and releases that frame.
func TestOwnedPayload(t *testing.T) {
	mem := &mptest.Frames{Headroom: 5}
	k := &ownKeeper{}
	c := composite(t, microproto.Config{MTU: 40, Frames: mem, Headroom: 5}, mptest.Top(), k, mptest.Bottom(nil))
	data := []byte("before")
	for range 3 {
		m, err := c.Message()
		require.NoError(t, err)
		m.Payload = data
		require.NoError(t, c.Submit(0, m))
	}
	require.Equal(t, []error{nil, nil, nil}, k.errs)
	require.EqualValues(t, 3, mem.Acquired)
	copy(data, "after!")
	do(t, c, func(x *exec) {
		x.Release(k.held[0], k.bit)
		x.Drop(k.held[1], "not wanted")
	})
	require.EqualValues(t, 3, mem.Acquired, "transmitting copies no second time")
	out := c.Drain(nil)
	require.Len(t, out, 1)
	require.Equal(t, "\x00\x00\x00before", string(out[0].Frame.Data))
	out[0].Frame.Release()
	require.NoError(t, c.Close(1))
	require.Equal(t, mem.Acquired, mem.Released)
}

// noFrames is a frame source without memory.
type noFrames struct{}

func (noFrames) Acquire(int) microproto.Frame { return microproto.Frame{} }

func TestOwnedPayloadWithoutMemory(t *testing.T) {
	for _, test := range []struct {
		name   string
		frames microproto.FrameSource
		length int
		want   error
	}{
		{"no frame", noFrames{}, 6, microproto.ErrBusy},
		{"too long", nil, 38, microproto.ErrTooLong},
		{"just fits", nil, 37, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &ownKeeper{}
			c := composite(t, microproto.Config{MTU: 40, Frames: test.frames}, mptest.Top(), k, mptest.Bottom(nil))
			m, err := c.Message()
			require.NoError(t, err)
			data := make([]byte, test.length)
			m.Payload = data
			_ = c.Submit(0, m)
			require.ErrorIs(t, k.errs[0], test.want)
		})
	}
}
