package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

var asyncInter = []string{"TransportDriver", "Resize", "Asynchronous", "DCCPAck", "DCCPWindowCongestionControl",
	"TCPCongestionAvoidance"}

func TestAsynchronousInterConformance(t *testing.T) {
	for _, name := range asyncInter {
		t.Run(name, func(t *testing.T) {
			mptest.Conform(t, mptest.Subject{
				Protocol: name,
				New:      func(int) []microproto.MicroProtocol { return build(t, asyncInter, nil) },
				Messages: conformMessages(),
			})
		})
	}
}

// interRig returns two ends of the asynchronous column between clusters over Ethernet, with one
// slot.
func interRig(tb require.TestingT, o microproto.Options, mtu int, seed uint64, f mptest.Faults, length int) *rig {
	r := newRig(tb, asyncInter, o, mtu, seed, f)
	for _, c := range r.ends {
		require.NoError(tb, c.Endpoint().Slot(tag, length))
	}
	return r.open()
}

// interOptions are those of the policy for the column. With slowOptions no time-out fires in tests
// that count packets.
var (
	interOptions = microproto.Options{OptionRTOFloor: int64(200 * time.Millisecond)}
	slowOptions  = microproto.Options{OptionRTOFloor: int64(200 * time.Millisecond),
		OptionPacketRTOFloor: int64(200 * time.Millisecond)}
)

// Whatever a peer sends while values wait, memory stays bounded and every message is accounted
// for.
func FuzzAsynchronousInterInput(f *testing.F) {
	f.Add([]byte{3, 0, 1, 2})
	f.Add([]byte{1, 1, 1, 120, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 1, 0, 0, 0, 2, 255, 255,
		255, 255, 255, 255, 255, 255, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		c, err := microproto.NewComposite(microproto.Config{Name: "f", MTU: 200,
			Limits: microproto.Limits{Messages: 64}}, build(t, asyncInter, interOptions)...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, 2400))
		require.NoError(t, c.Open(0))
		now, dst := microproto.Instant(0), make([]byte, 2400)
		w := c.Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
		for len(script) > 0 {
			op := script[0]
			n := min(int(op>>1), len(script)-1)
			frame := append([]byte{0, 1, 0, 1}, script[1:1+n]...)
			script = script[1+n:]
			now = now.Add(time.Millisecond)
			if op&1 == 0 {
				_ = c.Input(now, microproto.Frame{Peer: 1, Data: frame})
			} else {
				_ = c.Do(now, func(x *microproto.Exec) {
					_, _ = c.Endpoint().Send(x, tag, uint64(now), dst)
					_, _ = c.Endpoint().Receive(x, tag, dst, nil)
				})
			}
			_ = c.Advance(now)
			for _, out := range c.Drain(nil) {
				out.Frame.Release()
				c.Recycle(out.Message)
			}
			require.True(t, c.Counters().Balanced())
			require.LessOrEqual(t, w.waiting.Len(), 32)
			require.GreaterOrEqual(t, *w.inFlight, 0)
			require.GreaterOrEqual(t, *w.announced, 1)
			ratio := c.Protocol("DCCPAck").(*DCCPAck).ratio.value
			require.LessOrEqual(t, ratio, (*w.announced+1)/2)
		}
		require.NoError(t, c.Err())
		_ = c.Close(now)
		require.Zero(t, c.Counters().Live)
	})
}

// BenchmarkAsynchronousInterSend measures Send of a value that is sent, and of one that waits and
// replaces an older one.
func BenchmarkAsynchronousInterSend(b *testing.B) {
	for _, c := range []struct {
		name   string
		length int
		wait   bool
	}{{"8 B", 8, false}, {"8 B waiting", 8, true}, {"128 KiB waiting", 128 << 10, true}} {
		b.Run(c.name, func(b *testing.B) {
			ends := [2]*microproto.Composite{plainEnd(b, asyncInter, interOptions),
				plainEnd(b, asyncInter, interOptions)}
			for _, e := range ends {
				require.NoError(b, e.Endpoint().Slot(tag, c.length))
			}
			data := make([]byte, c.length)
			var label uint64
			var outs, backs []microproto.Output
			send := func(x *microproto.Exec) { _, _ = ends[0].Endpoint().Send(x, tag, label, data) }
			for b.Loop() {
				label++
				_ = ends[0].Do(1, send)
				if outs = ends[0].Drain(outs[:0]); c.wait {
					continue
				}
				for _, o := range outs {
					_ = ends[1].Input(1, o.Frame)
				}
				backs = ends[1].Drain(backs[:0])
				for _, o := range backs {
					_ = ends[0].Input(1, o.Frame)
				}
			}
		})
	}
}
