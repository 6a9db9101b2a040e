package suite

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testNoReceive: RC waits for a receive request, as often as it was told to; UC loses
// the message without a word, a write with immediate as well.
func testNoReceive(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	if tr == verbs.UC {
		fill(a.memory[:5000], 1)
		lost := a.write(2, 0, 8, b, 100)
		lost.Operation = verbs.WriteImmediate
		a.post(a.send(1, 0, 5000), lost)
		for i, c := range a.poll(a.sends, 2) {
			a.ended(c, uint64(i+1), []verbs.CompletionKind{verbs.Sent, verbs.Written}[i])
		}
		// A third that arrives shows that the first two are past.
		a.rendezvous(b)
		return
	}
	a.post(a.send(1, 0, 5000))
	b.expect(b.slot(2, 0, 5000)) // while the sender waits
	a.ended(a.poll(a.sends, 1)[0], 1, verbs.Sent)
	b.ended(b.poll(b.recvs, 1)[0], 2, verbs.Received)

	c, d := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 2})
	c.post(c.send(1, 0, 8), c.send(2, 0, 8))
	got := c.poll(c.sends, 2)
	require.Equal(t, verbs.StatusRNRExceeded, got[0].Status, "%v", got[0].Status)
	require.EqualValues(t, 1, got[0].ID)
	c.flushed(got[1:], 2)
	c.inState(verbs.Error)
	d.inState(verbs.ReadyToSend) // which has done nothing wrong
}

// rendezvous posts a receive, waits until it surely counts, and has it filled.
func (e *end) rendezvous(to *end) {
	e.t.Helper()
	to.expect(to.slot(77, 0, 64), to.slot(78, 64, 64))
	w := e.send(79, 0, 4)
	e.post(w)
	e.ended(e.poll(e.sends, 1)[0], 79, verbs.Sent)
	c := to.poll(to.recvs, 1)[0]
	to.ended(c, 77, verbs.Received)
	require.EqualValues(e.t, 4, c.Bytes)
	to.quiet(to.recvs)
}

// testKeys: what a remote write may not touch. RC tells, and both pairs are in error;
// UC is silent and goes on.
func testKeys(t *testing.T, r Rig, tr verbs.Transport) {
	for name, c := range map[string]struct {
		access verbs.Access
		pair   verbs.Access
		close  bool
		spoil  func(*verbs.SendRequest, *end)
	}{
		"key":             {spoil: func(w *verbs.SendRequest, _ *end) { w.RemoteKey ^= 0x5a5a00 }},
		"before":          {spoil: func(w *verbs.SendRequest, b *end) { w.RemoteAddr = b.region.Addr() - 1 }},
		"behind":          {spoil: func(w *verbs.SendRequest, b *end) { w.RemoteAddr = b.region.Addr() + uint64(len(b.memory)) - 4999 }},
		"around":          {spoil: func(w *verbs.SendRequest, _ *end) { w.RemoteAddr = ^uint64(0) - 100 }},
		"region's rights": {access: verbs.LocalWrite, spoil: func(*verbs.SendRequest, *end) {}},
		"pair's rights":   {pair: verbs.LocalWrite, spoil: func(*verbs.SendRequest, *end) {}},
		"revoked":         {close: true, spoil: func(*verbs.SendRequest, *end) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := both(t, r, shape{
				config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, access: c.access,
				unlike: func(_ int, at *verbs.Attributes) {
					if at.Mask&verbs.MaskAccess != 0 && c.pair != 0 {
						at.Access = c.pair
					}
				},
			})
			spare, err := b.domain.Register(b.memory[:4096], everything)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, spare.Close()) })
			other := verbs.Element{Addr: spare.Addr(), Length: 64, Key: spare.LocalKey()}
			for i := range uint64(2) {
				b.expect(verbs.ReceiveRequest{ID: 5 + i, Elements: []verbs.Element{other}})
			}
			fill(a.memory[:5000], 1)
			w := a.write(1, 0, 5000, b, 8192)
			c.spoil(&w, b)
			if c.close {
				require.NoError(t, b.region.Close())
			}
			a.post(w, a.send(2, 0, 8))
			a.judge(b, tr)
			require.True(t, bytes.Equal(make([]byte, len(b.memory)-4096), b.memory[4096:]), "something has landed")
		})
	}
}

// judge is what follows a bad write and a good send.
func (e *end) judge(b *end, tr verbs.Transport) {
	e.t.Helper()
	got := e.poll(e.sends, 2)
	if tr == verbs.UC {
		e.ended(got[0], 1, verbs.Written)
		e.ended(got[1], 2, verbs.Sent)
		b.ended(b.poll(b.recvs, 1)[0], 5, verbs.Received)
		b.inState(verbs.ReadyToSend)
		return
	}
	require.EqualValues(e.t, 1, got[0].ID)
	e.status(got[0], verbs.StatusRemoteAccess, verbs.StatusRemoteInvalid)
	e.flushed(got[1:], 2)
	e.inState(verbs.Error)
	b.flushed(b.poll(b.recvs, 2), 5, 6)
	b.reaches(verbs.Error)
}

// testLocalProtection: the sender's own memory.
func testLocalProtection(t *testing.T, r Rig, tr verbs.Transport) {
	for name, spoil := range map[string]func(*verbs.Element, *end){
		"key":    func(e *verbs.Element, _ *end) { e.Key ^= 0x5a5a00 },
		"bounds": func(e *verbs.Element, a *end) { e.Addr = a.region.Addr() + uint64(len(a.memory)) - 7 },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
			b.expect(b.slot(1, 0, 64), b.slot(2, 64, 64))
			w := a.send(2, 0, 8)
			spoil(&w.Elements[0], a)
			a.post(a.send(1, 0, 8), w, a.send(3, 0, 8))
			got := a.poll(a.sends, 3)
			a.ended(got[0], 1, verbs.Sent)
			require.EqualValues(t, 2, got[1].ID)
			a.status(got[1], verbs.StatusLocalProtection, verbs.StatusLocalOperation)
			a.flushed(got[2:], 3)
			a.inState(verbs.Error)
			b.ended(b.poll(b.recvs, 1)[0], 1, verbs.Received)
			b.inState(verbs.ReadyToSend)
		})
	}
}

// testReceiveProtection: the receiver's own memory.
func testReceiveProtection(t *testing.T, r Rig, tr verbs.Transport) {
	for name, c := range map[string]struct {
		access verbs.Access
		spoil  func(*verbs.Element, *end)
	}{
		"key":    {spoil: func(e *verbs.Element, _ *end) { e.Key ^= 0x5a5a00 }},
		"rights": {access: verbs.RemoteRead, spoil: func(*verbs.Element, *end) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, access: c.access})
			w := b.slot(5, 0, 64)
			c.spoil(&w.Elements[0], b)
			b.expect(w, verbs.ReceiveRequest{ID: 6})
			a.post(a.send(1, 0, 8))
			failsAtReceiver(t, a, b, tr, verbs.StatusLocalProtection, verbs.StatusRemoteOperation, verbs.StatusRemoteAccess)
		})
	}
}

// testTooLong: a message longer than the receive request.
func testTooLong(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	b.expect(b.slot(5, 0, 4999), b.slot(6, 8192, 5000))
	a.post(a.send(1, 0, 5000))
	failsAtReceiver(t, a, b, tr, verbs.StatusLocalLength, verbs.StatusRemoteInvalid, verbs.StatusRemoteOperation)
}

// failsAtReceiver: b's receive 5 ends with a status of its own and 6 is flushed; a's send
// 1 fails with one of two remote statuses, and a UC sender knows nothing of it.
func failsAtReceiver(t *testing.T, a, b *end, tr verbs.Transport, local, remote, or verbs.Status) {
	got := b.poll(b.recvs, 2)
	require.EqualValues(t, 5, got[0].ID)
	b.status(got[0], local, verbs.StatusLocalOperation)
	b.flushed(got[1:], 6)
	b.reaches(verbs.Error)
	s := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.ended(s, 1, verbs.Sent)
		return
	}
	a.status(s, remote, or)
	a.inState(verbs.Error)
}

// testBrokenSender: a pair that another's bad write puts in Error flushes its own sends.
func testBrokenSender(t *testing.T, r Rig, tr verbs.Transport) {
	if tr == verbs.UC {
		t.Skip("a bad write does nothing to a UC pair")
	}
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	w := b.send(2, 0, 8)
	w.Signaled = false
	b.post(b.send(1, 0, 8), w) // which wait: a has posted no receive request
	bad := a.write(3, 0, 8, b, 0)
	bad.RemoteKey ^= 0x5a5a00
	a.post(bad)
	a.status(a.poll(a.sends, 1)[0], verbs.StatusRemoteAccess, verbs.StatusRemoteInvalid)
	b.flushed(b.poll(b.sends, 2), 1, 2)
	b.reaches(verbs.Error)
}
