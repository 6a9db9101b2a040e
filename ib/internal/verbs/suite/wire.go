package suite

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testLoss: RC mends what is lost on the way; UC loses the message, and of a write
// perhaps only a part.
func testLoss(t *testing.T, r Rig, tr verbs.Transport) {
	if r.Lose == nil {
		t.Skip("nothing can be dropped here")
	}
	t.Cleanup(func() { r.Lose(nil) })
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, timeout: 8, retries: 7, rnr: 7})
	m := r.mtu(a.port)
	for lost := range 3 {
		clear(b.memory)
		fill(a.memory[:3*m], lost)
		b.expect(b.slot(1, 0, 3*m))
		r.Lose(func(p int) bool { return p == lost })
		a.post(a.send(1, 0, 3*m))
		a.ended(a.poll(a.sends, 1)[0], 1, verbs.Sent)
		if tr == verbs.UC {
			b.quiet(b.recvs)
			fill(a.memory[:3*m], lost+10)
			a.post(a.send(2, 0, 3*m)) // into the same receive request
			a.ended(a.poll(a.sends, 1)[0], 2, verbs.Sent)
		}
		b.ended(b.poll(b.recvs, 1)[0], 1, verbs.Received)
		require.True(t, bytes.Equal(a.memory[:3*m], b.memory[:3*m]), "packet %d lost", lost)
		clear(b.memory)
		b.expect(verbs.ReceiveRequest{ID: 4})
		r.Lose(func(p int) bool { return p == lost })
		w := a.write(3, 0, 3*m, b, 0)
		w.Operation = verbs.WriteImmediate
		a.post(w)
		a.ended(a.poll(a.sends, 1)[0], 3, verbs.Written)
		if tr == verbs.UC {
			b.quiet(b.recvs)
			require.True(t, bytes.Equal(a.memory[:lost*m], b.memory[:lost*m]), "what came before the gap has landed")
			require.True(t, bytes.Equal(make([]byte, m), b.memory[lost*m:(lost+1)*m]))
			r.Lose(nil)
			a.post(w)
			a.ended(a.poll(a.sends, 1)[0], 3, verbs.Written)
		}
		b.ended(b.poll(b.recvs, 1)[0], 4, verbs.ReceivedImmediate)
		require.True(t, bytes.Equal(a.memory[:3*m], b.memory[:3*m]))
	}
}

// testPort: the wire is pulled and plugged; RC gives up in bounded time, both ends are
// told, and new pairs work when it is back.
func testPort(t *testing.T, r Rig, tr verbs.Transport) {
	if r.SetPort == nil {
		t.Skip("the wire cannot be pulled here")
	}
	s := lonely(tr)
	a, b := both(t, r, s)
	t.Cleanup(func() { r.SetPort(1, true) })
	events := make(chan verbs.Event, 64)
	go func() {
		for {
			e, err := b.device.NextEvent()
			if err != nil {
				return
			}
			events <- e
		}
	}()
	told := func(want verbs.EventKind) {
		t.Helper()
		b.until("an event of the port", func() bool {
			select {
			case e := <-events:
				return e.Kind == want && e.Port == r.Port
			default:
				return false
			}
		})
	}
	b.expect(b.slot(1, 0, 4096), b.slot(2, 4096, 4096))
	r.SetPort(1, false)
	told(verbs.EventPortError)
	b.until("the port to be down", func() bool {
		p, err := b.device.Port(r.Port)
		require.NoError(t, err)
		return p.State != verbs.PortActive
	})
	a.unheard(1, verbs.StatusLocalOperation) // rxe: an interface that is down sends nothing
	b.quiet(b.recvs)
	r.SetPort(1, true)
	told(verbs.EventPortActive)
	b.until("the port to be up", func() bool {
		p, err := b.device.Port(r.Port)
		require.NoError(t, err)
		return p.State == verbs.PortActive
	})
	for _, e := range []*end{a, b} {
		require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
	}
	a.join(b, s, 0)
	b.join(a, s, 1)
	a.rendezvous(b)
}
