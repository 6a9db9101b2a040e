package suite

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testTransitions: each step wants exactly its attributes, and there is no other way.
func testTransitions(t *testing.T, r Rig, tr verbs.Transport) {
	s := shape{config: verbs.PairConfig{Transport: tr}, unjoined: true, retries: 7, rnr: 7}
	a, b := both(t, r, s)
	steps := a.steps(b, s)
	bits := func(m verbs.Mask) (out []verbs.Mask) {
		for i := range 32 {
			if x := verbs.Mask(1) << i; m&x != 0 && x != verbs.MaskState {
				out = append(out, x)
			}
		}
		return out
	}
	all := steps[0].Mask | steps[1].Mask | steps[2].Mask
	states := []verbs.PairState{verbs.Reset, verbs.Init, verbs.ReadyToReceive, verbs.ReadyToSend}
	for i, good := range steps {
		a.inState(states[i])
		for _, m := range bits(good.Mask) {
			bad := good
			bad.Mask &^= m
			err := a.pair.Modify(bad)
			require.ErrorIs(t, err, verbs.ErrAttributes, "%v without %v", good.State, m)
			require.ErrorContains(t, err, m.String())
			a.inState(states[i])
		}
		for _, m := range bits(all &^ good.Mask &^ (verbs.MaskAccess | verbs.MaskPartitionKey | verbs.MaskRNRTimer)) {
			bad := good
			bad.Mask |= m
			err := a.pair.Modify(bad)
			require.ErrorIs(t, err, verbs.ErrAttributes, "%v with %v", good.State, m)
			require.ErrorContains(t, err, m.String())
			a.inState(states[i])
		}
		for j, other := range steps { // not out of turn
			if j == i || i == 1 && j == 0 {
				continue
			}
			require.Error(t, a.pair.Modify(other), "%v to %v", states[i], other.State)
			a.inState(states[i])
		}
		require.NoError(t, a.pair.Modify(good))
	}
	a.inState(verbs.ReadyToSend)
	require.ErrorIs(t, a.pair.Modify(steps[0]), verbs.ErrState)
	require.NoError(t, a.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	a.inState(verbs.Error)
	require.ErrorIs(t, a.pair.Modify(steps[2]), verbs.ErrState, "error is left by reset only")
	require.NoError(t, a.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
	a.inState(verbs.Reset)
	// Values that no port, path or pair has.
	bad := steps[0]
	bad.Port = 200
	require.Error(t, a.pair.Modify(bad))
	require.NoError(t, a.pair.Modify(steps[0]))
	for name, spoil := range map[string]func(*verbs.Attributes){
		"MTU":    func(x *verbs.Attributes) { x.PathMTU = 1500 },
		"number": func(x *verbs.Attributes) { x.Remote = 1 << 24 },
		"PSN":    func(x *verbs.Attributes) { x.ReceivePSN = 1 << 24 },
	} {
		bad := steps[1]
		spoil(&bad)
		require.ErrorIs(t, a.pair.Modify(bad), verbs.ErrAttributes, name)
		a.inState(verbs.Init)
	}
	require.NoError(t, a.pair.Modify(steps[1]))
	require.NoError(t, a.pair.Modify(steps[2]))
}

// testStates: what may be posted when.
func testStates(t *testing.T, r Rig, tr verbs.Transport) {
	s := shape{config: verbs.PairConfig{Transport: tr}, unjoined: true, retries: 7, rnr: 7}
	a, b := both(t, r, s)
	steps := a.steps(b, s)
	send := func(want error) {
		t.Helper()
		n, err := a.pair.PostSend([]verbs.SendRequest{a.send(1, 0, 8)})
		require.ErrorIs(t, err, want)
		require.Zero(t, n)
	}
	send(verbs.ErrState)
	n, err := a.pair.PostReceive([]verbs.ReceiveRequest{a.slot(1, 0, 8)})
	require.ErrorIs(t, err, verbs.ErrState)
	require.Zero(t, n)
	require.NoError(t, a.pair.Modify(steps[0]))
	send(verbs.ErrState)
	a.expect(a.slot(1, 0, 64))
	require.NoError(t, a.pair.Modify(steps[1]))
	send(verbs.ErrState)
	a.expect(a.slot(2, 64, 64))
	// Ready to receive is enough to receive.
	b.join(a, s, 1)
	b.post(b.send(7, 0, 8))
	b.ended(b.poll(b.sends, 1)[0], 7, verbs.Sent)
	a.ended(a.poll(a.recvs, 1)[0], 1, verbs.Received)
	require.NoError(t, a.pair.Modify(steps[2]))
	a.inState(verbs.ReadyToSend)
}

// testFlush: in Error all that is outstanding, and all that is posted later, completes
// as flushed, in order, signaled or not.
func testFlush(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 6, rnr: 7})
	for i := range uint64(5) {
		b.expect(b.slot(i, 0, 64))
	}
	a.post(a.send(1, 0, 8))
	a.ended(a.poll(a.sends, 1)[0], 1, verbs.Sent)
	b.ended(b.poll(b.recvs, 1)[0], 0, verbs.Received)
	require.NoError(t, b.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	b.flushed(b.poll(b.recvs, 4), 1, 2, 3, 4)
	if r.Exact { // rxe does not look at its receive queue before a packet comes
		b.expect(b.slot(5, 0, 64))
		b.flushed(b.poll(b.recvs, 1), 5)
	}
	w := b.send(6, 0, 8)
	w.Signaled = false
	b.post(w, b.send(7, 0, 8))
	b.flushed(b.poll(b.sends, 2), 6, 7)
	// The other end is not told. RC finds out, UC never does. (rxe takes 7 retries for
	// retries without end.)
	a.post(a.send(2, 0, 8))
	c := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.ended(c, 2, verbs.Sent)
		return
	}
	require.Equal(t, verbs.StatusRetriesExceeded, c.Status, "%v", c.Status)
}

// testReset: a pair is as new after Reset, and can be joined again.
func testReset(t *testing.T, r Rig, tr verbs.Transport) {
	s := shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7}
	a, b := both(t, r, s)
	for round := range 3 {
		for i := range uint64(3) {
			b.expect(b.slot(i, 0, 64))
		}
		a.post(a.send(1, 0, 8), a.send(2, 0, 8))
		a.poll(a.sends, 2)
		for i, c := range b.poll(b.recvs, 2) {
			b.ended(c, uint64(i), verbs.Received)
		}
		for n, e := range []*end{a, b} {
			if round == 1 {
				require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
				if n == 1 {
					e.flushed(e.poll(e.recvs, 1), 2)
				}
			}
			require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
			e.quiet(e.recvs)
			e.psn = (e.psn + 1000) & 0xffffff
		}
		a.join(b, s, 0)
		b.join(a, s, 1)
	}
}

// testPathMTU: ends that do not agree on the size of packets. RC says so, UC drops.
func testPathMTU(t *testing.T, r Rig, tr verbs.Transport) {
	if !r.Exact {
		t.Skip("stacks differ")
	}
	s := shape{config: verbs.PairConfig{Transport: tr}, retries: 6, rnr: 7}
	s.unlike = func(n int, at *verbs.Attributes) {
		if n == 1 && at.Mask&verbs.MaskPathMTU != 0 {
			at.PathMTU = 512
			if r.mtu(verbs.Port{MTU: 4096}) == 512 {
				at.PathMTU = 256
			}
		}
	}
	a, b := both(t, r, s)
	b.expect(b.slot(1, 0, 8192))
	a.post(a.send(1, 0, 5000))
	c := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.ended(c, 1, verbs.Sent)
		b.quiet(b.recvs)
		return
	}
	require.Equal(t, verbs.StatusRemoteInvalid, c.Status, "%v", c.Status)
	b.flushed(b.poll(b.recvs, 1), 1)
}

// lonely is a shape whose RC pairs give up soon: 65 µs × 2^(8−4), three times.
func lonely(tr verbs.Transport) shape {
	return shape{config: verbs.PairConfig{Transport: tr}, timeout: 8, retries: 2, rnr: 7}
}

// unheard is what a send comes to that the other end does not take: RC gives up in
// bounded time, UC has no idea. others are statuses of stacks that notice it here.
func (e *end) unheard(id uint64, others ...verbs.Status) {
	e.t.Helper()
	e.post(e.send(id, 0, 3000))
	c := e.poll(e.sends, 1)[0]
	require.Equal(e.t, id, c.ID)
	want := verbs.StatusRetriesExceeded
	if e.pair.Transport() == verbs.UC {
		want = verbs.StatusOK
	}
	e.status(c, want, others...)
	if c.Status != verbs.StatusOK {
		e.inState(verbs.Error)
	}
}

// testWrongNumber: a queue pair number that nobody has.
func testWrongNumber(t *testing.T, r Rig, tr verbs.Transport) {
	s := lonely(tr)
	s.unlike = func(n int, at *verbs.Attributes) {
		if n == 0 && at.Mask&verbs.MaskRemote != 0 {
			at.Remote ^= 0x7ff000
		}
	}
	a, b := both(t, r, s)
	b.expect(b.slot(1, 0, 4096))
	a.unheard(1)
	b.quiet(b.recvs)
	b.inState(verbs.ReadyToSend)
}

// testWrongPSN: ends that do not agree on the first packet. RC never delivers; UC takes
// up at the first packet of any message.
func testWrongPSN(t *testing.T, r Rig, tr verbs.Transport) {
	for name, by := range map[string]uint32{"ahead": 40, "behind": 1<<24 - 40} {
		t.Run(name, func(t *testing.T) {
			s := lonely(tr)
			s.unlike = func(n int, at *verbs.Attributes) {
				if n == 1 && at.Mask&verbs.MaskReceivePSN != 0 {
					at.ReceivePSN = (at.ReceivePSN + by) & 0xffffff
				}
			}
			a, b := both(t, r, s)
			b.expect(b.slot(1, 0, 4096))
			a.unheard(1, verbs.StatusOK) // rxe takes what is behind for a repeat, and acknowledges it
			if tr == verbs.RC {
				b.quiet(b.recvs)
				return
			}
			b.ended(b.poll(b.recvs, 1)[0], 1, verbs.Received)
		})
	}
}
