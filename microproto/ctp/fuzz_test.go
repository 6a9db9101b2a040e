package ctp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// Whatever a peer sends, memory stays bounded and every message is accounted for.
func FuzzInput(f *testing.F) {
	f.Add(false, []byte{3, 0, 1, 2})
	f.Add(false, []byte{3, 0, 1, 2, 5})
	f.Add(true, make([]byte, 60))
	f.Add(false, append([]byte{3, 0, 80}, make([]byte, 41)...))
	for _, first := range []uint32{0, 1, 66, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for _, flags := range []uint8{0, flagMore, maskCopy << copyShift, 255} {
			f.Add(false, ackScript(f, syncEther, 2, first, flags))
			f.Add(false, ackScript(f, syncInter, 1, first, flags))
		}
	}
	f.Fuzz(func(t *testing.T, async bool, script []byte) {
		names, inMessages := syncEther, int64(0)
		switch {
		case async:
			names = asyncEther
		case len(script)%2 == 1:
			names = syncInter
		case len(script)%4 == 0:
			names, inMessages = syncReady, 1
		}
		o := microproto.Options{OptionReceive: 4096, OptionPeerReceive: 4096, OptionGrantsInMessages: inMessages}
		c, err := microproto.NewComposite(microproto.Config{Name: "f", MTU: 200,
			Limits: microproto.Limits{Messages: 64}}, build(t, names, o)...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, 800))
		require.NoError(t, c.Open(0))
		now, dst := microproto.Instant(0), make([]byte, 8192)
		ports := []byte{0, 1, 0, 1}
		for len(script) > 0 {
			op := script[0]
			n := min(int(op>>1), len(script)-1)
			frame := append(append([]byte(nil), ports...), script[1:1+n]...)
			script = script[1+n:]
			now = now.Add(time.Millisecond)
			if op&1 == 0 {
				_ = c.Input(now, microproto.Frame{Peer: 1, Data: frame})
			} else {
				_ = c.Do(now, func(x *microproto.Exec) {
					_, _ = c.Endpoint().Send(x, tag, uint64(now), dst[:800])
					_, _ = c.Endpoint().Receive(x, tag, dst, nil)
				})
			}
			_ = c.Advance(now)
			for _, out := range c.Drain(nil) {
				out.Frame.Release()
				c.Recycle(out.Message)
			}
			require.True(t, c.Counters().Balanced())
		}
		_ = c.Close(now)
		require.Zero(t, c.Counters().Live)
	})
}

// ackScript returns a script for FuzzInput: two messages, and acknowledgements with payloads of two lengths. Its length
// modulo 4 chooses the composition.
func ackScript(tb testing.TB, names []string, modulo int, first uint32, flags uint8) []byte {
	c, err := microproto.NewComposite(microproto.Config{Name: "f", MTU: 200}, build(tb, names, nil)...)
	require.NoError(tb, err)
	script := []byte{1, 1}
	for _, length := range []int{9, 40} {
		payload := binary.BigEndian.AppendUint32(nil, first)
		for i := range length {
			payload = append(payload, byte(255-i))
		}
		frame := ackFrame(c, 1, flags, payload)[4:]
		script = append(append(script, byte(2*len(frame))), frame...)
	}
	for len(script)%4 != modulo {
		script = append(script, 1)
	}
	return script
}
