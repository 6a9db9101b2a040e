package driver

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// farLink is a link that delays frames.
type farLink struct {
	microproto.Link
	delay *atomic.Int64
}

func (l farLink) Send(batch []microproto.Frame) (int, error) {
	d := time.Duration(l.delay.Load())
	if d == 0 {
		return l.Link.Send(batch)
	}
	for _, f := range batch {
		f = f.Flatten(l.Link)
		time.AfterFunc(d, func() {
			if k, err := l.Link.Send([]microproto.Frame{f}); k == 0 && err == nil {
				f.Release()
			}
		})
	}
	return len(batch), nil
}

// When the distance of a path changes, the composition of a session in use follows, there and back, and no
// message is lost.
func TestMonitorFollowsThePath(t *testing.T) {
	var delay atomic.Int64
	far := func(c *Config) {
		c.Catalog, c.Rails = ctp.Catalog(), []Rail{{Network: p2psap.Ethernet, Link: farLink{c.Rails[0].Link, &delay}}}
		c.Monitor = p2psap.MonitorConfig{Declared: true, Dwell: 50 * time.Millisecond, FarAbove: 30 * time.Millisecond,
			NearBelow: 20 * time.Millisecond, LossyAbove: 1}
	}
	a, b := start(t, "a", far), start(t, "b", far)
	join(t, a, b)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	ctx := limit(t)
	over := make(chan struct{})
	var wg sync.WaitGroup
	for _, s := range []*Socket{sa, sb} {
		wg.Go(func() { // one message there, one back, in order
			slot := p2psap.Slot{Tag: 2, Data: make([]byte, 8)}
			for i := uint64(1); ; i++ {
				select {
				case <-over:
					_ = s.Close()
					return
				default:
				}
				_, err := s.Send(ctx, 2, p2psap.Label(i), make([]byte, 8))
				var r p2psap.Arrival
				if err == nil {
					r, err = s.Receive(ctx, &slot)
				}
				if errors.Is(err, p2psap.ErrClosed) {
					return
				}
				if err != nil || r.Label != i {
					t.Errorf("message %d: %v, %v", i, r.Label, err)
					return
				}
			}
		})
	}
	inter := func(want bool) func() bool {
		return func() bool {
			return slices.Contains(sa.Info().Composition, "DuplicateAck") == want && slices.Contains(sb.Info().Composition,
				"DuplicateAck") == want
		}
	}
	await.Until(t, inter(false), "the composition within a cluster")
	delay.Store(int64(60 * time.Millisecond))
	await.Until(t, inter(true), "the composition between clusters")
	delay.Store(0)
	await.Until(t, inter(false), "the composition within a cluster")
	// The other end may know of the change first, and the new composition has measured nothing yet.
	await.Until(t, func() bool {
		i := sa.Info()
		return i.Changes >= 2 && i.Path.RTT > 0 && i.Path.Rate > 0
	}, "two changes and a measurement")
	close(over)
	wg.Wait()
}
