package verbs_test

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testLoss checks that RC repairs a lost packet, and that UC loses the message, or part of a
// write.
func testLoss(t *testing.T, r rig, tr verbs.Transport) {
	if r.SetLoss == nil {
		t.Skip("packets cannot be dropped here")
	}
	t.Cleanup(func() { r.SetLoss(nil) })
	a, b := openBoth(t, r, options{config: verbs.PairConfig{Transport: tr}, timeout: 8, retries: 7, rnr: 7})
	m := r.mtu(a.port)
	for lost := range 3 {
		clear(b.memory)
		fill(a.memory[:3*m], lost)
		b.postReceive(b.receive(1, 0, 3*m))
		r.SetLoss(func(p int) bool { return p == lost })
		a.post(a.send(1, 0, 3*m))
		a.requireSuccess(a.poll(a.sends, 1)[0], 1, verbs.Sent)
		if tr == verbs.UC {
			b.requireEmpty(b.recvs)
			fill(a.memory[:3*m], lost+10)
			a.post(a.send(2, 0, 3*m)) // received by the same request
			a.requireSuccess(a.poll(a.sends, 1)[0], 2, verbs.Sent)
		}
		b.requireSuccess(b.poll(b.recvs, 1)[0], 1, verbs.Received)
		require.True(t, bytes.Equal(a.memory[:3*m], b.memory[:3*m]), "packet %d lost", lost)
		clear(b.memory)
		b.postReceive(verbs.ReceiveRequest{ID: 4})
		r.SetLoss(func(p int) bool { return p == lost })
		w := a.write(3, 0, 3*m, b, 0)
		w.Operation = verbs.WriteImmediate
		a.post(w)
		a.requireSuccess(a.poll(a.sends, 1)[0], 3, verbs.Written)
		if tr == verbs.UC {
			b.requireEmpty(b.recvs)
			require.True(t, bytes.Equal(a.memory[:lost*m], b.memory[:lost*m]), "packets before the lost one")
			require.True(t, bytes.Equal(make([]byte, m), b.memory[lost*m:(lost+1)*m]))
			r.SetLoss(nil)
			a.post(w)
			a.requireSuccess(a.poll(a.sends, 1)[0], 3, verbs.Written)
		}
		b.requireSuccess(b.poll(b.recvs, 1)[0], 4, verbs.ReceivedImmediate)
		require.True(t, bytes.Equal(a.memory[:3*m], b.memory[:3*m]))
	}
}

// testPort disconnects and connects a port: RC fails in bounded time, both ends get events, and
// the pairs work again after a reset.
func testPort(t *testing.T, r rig, tr verbs.Transport) {
	if r.SetPort == nil {
		t.Skip("the port cannot be disconnected here")
	}
	s := quickToFail(tr)
	a, b := openBoth(t, r, s)
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
	awaitEvent := func(want verbs.EventKind) {
		t.Helper()
		b.await("an event of the port", func() bool {
			select {
			case e := <-events:
				return e.Kind == want && e.Port == r.Port
			default:
				return false
			}
		})
	}
	b.postReceive(b.receive(1, 0, 4096), b.receive(2, 4096, 4096))
	r.SetPort(1, false)
	awaitEvent(verbs.EventPortError)
	b.await("the port to be down", func() bool {
		p, err := b.device.Port(r.Port)
		require.NoError(t, err)
		return p.State != verbs.PortActive
	})
	a.sendUnanswered(1, verbs.StatusLocalOperation) // rxe: an interface that is down sends nothing
	b.requireEmpty(b.recvs)
	r.SetPort(1, true)
	awaitEvent(verbs.EventPortActive)
	b.await("the port to be up", func() bool {
		p, err := b.device.Port(r.Port)
		require.NoError(t, err)
		return p.State == verbs.PortActive
	})
	// rxe: packets that waited for the port come now. The pairs reject them by their numbers.
	for _, e := range []*end{a, b} {
		require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
		e.psn = (e.psn + 1<<16) & 0xffffff
	}
	s = reliable(tr)
	a.connect(b, s, 0)
	b.connect(a, s, 1)
	a.sendOne(b)
}
