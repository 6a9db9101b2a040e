package ctp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// Acknowledgements are 60 ms late for 50 ms out of 400, on a path with a round trip of 20 ms. A
// sender that took the delays for losses would use little of the path.
func TestLateAcknowledgements(t *testing.T) {
	for name, names := range map[string][]string{"sync": syncInter, "async": asyncInter} {
		t.Run(name, func(t *testing.T) {
			const period, late, by = 400 * time.Millisecond, 50 * time.Millisecond, 60 * time.Millisecond
			const warm, d = 2 * time.Second, 8 * time.Second
			const rate, mtu = 10e6 / 8, 1464
			// Twenty-five frames: 8 of the path and a queue of 17.
			r := newRig(t, names, interOptions, mtu, 1, mptest.Faults{Delay: way, Rate: rate, Capacity: 25})
			var due microproto.Instant // of the latest acknowledgement; they keep their order
			delayed := 0
			r.OnFrame = func(end int, f microproto.Frame) bool {
				now := r.Clock.Now()
				if end == 0 {
					return true
				}
				if time.Duration(now)%period >= period-late {
					due = now.Add(by)
				}
				if due <= now {
					return true
				}
				delayed++
				g := microproto.Frame{Peer: f.Peer, Data: append([]byte(nil), f.Data...)}
				r.Clock.At(due, func() { r.Link.Send(1, g) })
				return false
			}
			r.open()
			const size = 48 << 10
			data, dst := pattern(size, 1), make([]byte, size)
			require.NoError(t, r.ends[0].Endpoint().Slot(tag, size))
			require.NoError(t, r.ends[1].Endpoint().Slot(tag, size))
			before, received := mptest.LinkStats{}, 0
			for label := uint64(1); time.Duration(r.Clock.Now()) < warm+d; label++ {
				if time.Duration(r.Clock.Now()) < warm {
					before, received = r.Link.Stats(0), 0
				}
				for {
					if _, err := r.send(0, tag, label, data); err != nil || name == "async" {
						break // a value every 20 ms, or as many messages as are taken
					}
				}
				for step := 0; step < 10; step++ {
					for {
						_, err := r.receive(1, tag, dst, nil)
						if err != nil || name == "async" {
							break
						}
						received += size
					}
					r.run(2 * time.Millisecond)
				}
			}
			carried := float64(received) / d.Seconds()
			if name == "async" { // whatever arrives is new
				carried = float64(r.Link.Stats(0).Arrived-before.Arrived) * mtu / d.Seconds()
			}
			t.Logf("%.2f of the path's 10 Mbit/s", carried*8/1e6)
			require.Greater(t, delayed, 20)
			require.Greater(t, carried, 0.75*rate)
		})
	}
}
