package verbs_test

import (
	"bytes"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testNoReceive checks that RC waits for a receive request, for a number of retries, and that UC
// loses the message silently, also a write with immediate.
func testNoReceive(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	if tr == verbs.UC {
		fill(a.memory[:5000], 1)
		lost := a.write(2, 0, 8, b, 100)
		lost.Operation = verbs.WriteImmediate
		a.post(a.send(1, 0, 5000), lost)
		for i, c := range a.poll(a.sends, 2) {
			a.requireSuccess(c, uint64(i+1), []verbs.CompletionKind{verbs.Sent, verbs.Written}[i])
		}
		// The arrival of a third message shows that the others have been processed.
		a.sendOne(b)
		return
	}
	a.post(a.send(1, 0, 5000))
	b.postReceive(b.receive(2, 0, 5000)) // while the sender waits
	a.requireSuccess(a.poll(a.sends, 1)[0], 1, verbs.Sent)
	b.requireSuccess(b.poll(b.recvs, 1)[0], 2, verbs.Received)

	c, d := openBoth(t, r, options{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 2})
	c.post(c.send(1, 0, 8), c.send(2, 0, 8))
	got := c.poll(c.sends, 2)
	require.Equal(t, verbs.StatusRNRExceeded, got[0].Status, "%v", got[0].Status)
	require.EqualValues(t, 1, got[0].ID)
	c.requireFlushed(got[1:], 2)
	c.requireState(verbs.Error)
	d.requireState(verbs.ReadyToSend) // the receiver is not in error
}

// sendOne sends a message into the first of two receives, and checks that it is the only one.
func (e *end) sendOne(to *end) {
	e.t.Helper()
	to.postReceive(to.receive(77, 0, 64), to.receive(78, 64, 64))
	w := e.send(79, 0, 4)
	e.post(w)
	e.requireSuccess(e.poll(e.sends, 1)[0], 79, verbs.Sent)
	c := to.poll(to.recvs, 1)[0]
	to.requireSuccess(c, 77, verbs.Received)
	require.EqualValues(e.t, 4, c.Bytes)
	to.requireEmpty(to.recvs)
}

// testKeys checks what a remote write may not touch. On RC both pairs go to Error. UC drops the
// write silently and continues.
func testKeys(t *testing.T, r rig, tr verbs.Transport) {
	for name, c := range map[string]struct {
		access verbs.Access
		pair   verbs.Access
		close  bool
		spoil  func(*verbs.SendRequest, *end)
	}{
		"key":    {spoil: func(w *verbs.SendRequest, _ *end) { w.RemoteKey ^= 0x5a5a00 }},
		"before": {spoil: func(w *verbs.SendRequest, b *end) { w.RemoteAddr = b.region.Addr() - 1 }},
		"behind": {spoil: func(w *verbs.SendRequest, b *end) {
			w.RemoteAddr = b.region.Addr() + uint64(len(b.memory)) - 4999
		}},
		"around":          {spoil: func(w *verbs.SendRequest, _ *end) { w.RemoteAddr = ^uint64(0) - 100 }},
		"region's rights": {access: verbs.LocalWrite, spoil: func(*verbs.SendRequest, *end) {}},
		"pair's rights":   {pair: verbs.LocalWrite, spoil: func(*verbs.SendRequest, *end) {}},
		"revoked":         {close: true, spoil: func(*verbs.SendRequest, *end) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := openBoth(t, r, options{
				config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, access: c.access,
				modify: func(_ int, at *verbs.Attributes) {
					if at.Mask&verbs.MaskAccess != 0 && c.pair != 0 {
						at.Access = c.pair
					}
				},
			})
			spare, err := b.domain.Register(b.memory[:4096], allAccess)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, spare.Close()) })
			other := verbs.Element{Addr: spare.Addr(), Length: 64, Key: spare.LocalKey()}
			for i := range uint64(2) {
				b.postReceive(verbs.ReceiveRequest{ID: 5 + i, Elements: []verbs.Element{other}})
			}
			fill(a.memory[:5000], 1)
			w := a.write(1, 0, 5000, b, 8192)
			c.spoil(&w, b)
			if c.close {
				require.NoError(t, b.region.Close())
			}
			a.post(w, a.send(2, 0, 8))
			a.requireWriteResult(b, tr)
			require.True(t, bytes.Equal(make([]byte, len(b.memory)-4096), b.memory[4096:]), "memory has changed")
		})
	}
}

// requireWriteResult checks the completions of a refused write and a correct send.
func (e *end) requireWriteResult(b *end, tr verbs.Transport) {
	e.t.Helper()
	got := e.poll(e.sends, 2)
	if tr == verbs.UC {
		e.requireSuccess(got[0], 1, verbs.Written)
		e.requireSuccess(got[1], 2, verbs.Sent)
		b.requireSuccess(b.poll(b.recvs, 1)[0], 5, verbs.Received)
		b.requireState(verbs.ReadyToSend)
		return
	}
	require.EqualValues(e.t, 1, got[0].ID)
	e.requireStatus(got[0], verbs.StatusRemoteAccess, verbs.StatusRemoteInvalid)
	e.requireFlushed(got[1:], 2)
	e.requireState(verbs.Error)
	b.requireFlushed(b.poll(b.recvs, 2), 5, 6)
	b.awaitState(verbs.Error)
}

// testLocalProtection checks errors in the sender's own elements.
func testLocalProtection(t *testing.T, r rig, tr verbs.Transport) {
	for name, spoil := range map[string]func(*verbs.Element, *end){
		"key":    func(e *verbs.Element, _ *end) { e.Key ^= 0x5a5a00 },
		"bounds": func(e *verbs.Element, a *end) { e.Addr = a.region.Addr() + uint64(len(a.memory)) - 7 },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := openBoth(t, r, reliable(tr))
			b.postReceive(b.receive(1, 0, 64), b.receive(2, 64, 64))
			w := a.send(2, 0, 8)
			spoil(&w.Elements[0], a)
			a.post(a.send(1, 0, 8), w, a.send(3, 0, 8))
			got := a.poll(a.sends, 3)
			a.requireSuccess(got[0], 1, verbs.Sent)
			require.EqualValues(t, 2, got[1].ID)
			a.requireStatus(got[1], verbs.StatusLocalProtection, verbs.StatusLocalOperation)
			a.requireFlushed(got[2:], 3)
			a.requireState(verbs.Error)
			b.requireSuccess(b.poll(b.recvs, 1)[0], 1, verbs.Received)
			b.requireState(verbs.ReadyToSend)
		})
	}
}

// testReceiveProtection checks errors in the receiver's own elements.
func testReceiveProtection(t *testing.T, r rig, tr verbs.Transport) {
	for name, c := range map[string]struct {
		access verbs.Access
		spoil  func(*verbs.Element, *end)
	}{
		"key":    {spoil: func(e *verbs.Element, _ *end) { e.Key ^= 0x5a5a00 }},
		"rights": {access: verbs.RemoteRead, spoil: func(*verbs.Element, *end) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := openBoth(t, r, options{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, access: c.access})
			w := b.receive(5, 0, 64)
			c.spoil(&w.Elements[0], b)
			b.postReceive(w, verbs.ReceiveRequest{ID: 6})
			a.post(a.send(1, 0, 8))
			failsAtReceiver(t, a, b, tr, verbs.StatusLocalProtection, verbs.StatusRemoteOperation, verbs.StatusRemoteAccess)
		})
	}
}

// testTooLong sends a message longer than the receive request.
func testTooLong(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	b.postReceive(b.receive(5, 0, 4999), b.receive(6, 8192, 5000))
	a.post(a.send(1, 0, 5000))
	failsAtReceiver(t, a, b, tr, verbs.StatusLocalLength, verbs.StatusRemoteInvalid, verbs.StatusRemoteOperation)
}

// failsAtReceiver checks that b's receive 5 fails with a local status and 6 is flushed, and that
// a's send 1 fails with one of two remote statuses on RC, and succeeds on UC.
func failsAtReceiver(t *testing.T, a, b *end, tr verbs.Transport, local, remote, or verbs.Status) {
	got := b.poll(b.recvs, 2)
	require.EqualValues(t, 5, got[0].ID)
	b.requireStatus(got[0], local, verbs.StatusLocalOperation)
	b.requireFlushed(got[1:], 6)
	b.awaitState(verbs.Error)
	s := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.requireSuccess(s, 1, verbs.Sent)
		return
	}
	a.requireStatus(s, remote, or)
	a.requireState(verbs.Error)
}

// testBrokenSender checks that a pair put in Error by a remote write flushes its own sends.
func testBrokenSender(t *testing.T, r rig, tr verbs.Transport) {
	if tr == verbs.UC {
		t.Skip("a refused write does not affect a UC pair")
	}
	a, b := openBoth(t, r, reliable(tr))
	w := b.send(2, 0, 8)
	w.Signaled = false
	b.post(b.send(1, 0, 8), w) // both wait, since a has posted no receive request
	bad := a.write(3, 0, 8, b, 0)
	bad.RemoteKey ^= 0x5a5a00
	a.post(bad)
	a.requireStatus(a.poll(a.sends, 1)[0], verbs.StatusRemoteAccess, verbs.StatusRemoteInvalid)
	b.requireFlushed(b.poll(b.sends, 2), 1, 2)
	b.awaitState(verbs.Error)
}
