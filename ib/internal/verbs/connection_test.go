package verbs_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testTransitions checks that each transition needs exactly its attributes, in this order.
func testTransitions(t *testing.T, r rig, tr verbs.Transport) {
	s := options{config: verbs.PairConfig{Transport: tr}, unconnected: true, retries: 7, rnr: 7}
	a, b := openBoth(t, r, s)
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
		a.requireState(states[i])
		for _, m := range bits(good.Mask) {
			bad := good
			bad.Mask &^= m
			err := a.pair.Modify(bad)
			require.ErrorIs(t, err, verbs.ErrAttributes, "%v without %v", good.State, m)
			require.ErrorContains(t, err, m.String())
			a.requireState(states[i])
		}
		for _, m := range bits(all &^ good.Mask &^ (verbs.MaskAccess | verbs.MaskPartitionKey | verbs.MaskRNRTimer)) {
			bad := good
			bad.Mask |= m
			err := a.pair.Modify(bad)
			require.ErrorIs(t, err, verbs.ErrAttributes, "%v with %v", good.State, m)
			require.ErrorContains(t, err, m.String())
			a.requireState(states[i])
		}
		for j, other := range steps { // not out of order
			if j == i || i == 1 && j == 0 {
				continue
			}
			require.Error(t, a.pair.Modify(other), "%v to %v", states[i], other.State)
			a.requireState(states[i])
		}
		require.NoError(t, a.pair.Modify(good))
	}
	a.requireState(verbs.ReadyToSend)
	require.ErrorIs(t, a.pair.Modify(steps[0]), verbs.ErrState)
	require.NoError(t, a.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	a.requireState(verbs.Error)
	require.ErrorIs(t, a.pair.Modify(steps[2]), verbs.ErrState, "only Reset leaves Error")
	require.NoError(t, a.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
	a.requireState(verbs.Reset)
	// Values that are invalid for every port, path or pair.
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
		a.requireState(verbs.Init)
	}
	require.NoError(t, a.pair.Modify(steps[1]))
	require.NoError(t, a.pair.Modify(steps[2]))
}

// testStates checks which requests may be posted in which state.
func testStates(t *testing.T, r rig, tr verbs.Transport) {
	s := options{config: verbs.PairConfig{Transport: tr}, unconnected: true, retries: 7, rnr: 7}
	a, b := openBoth(t, r, s)
	steps := a.steps(b, s)
	send := func(want error) {
		t.Helper()
		n, err := a.pair.PostSend([]verbs.SendRequest{a.send(1, 0, 8)})
		require.ErrorIs(t, err, want)
		require.Zero(t, n)
	}
	send(verbs.ErrState)
	n, err := a.pair.PostReceive([]verbs.ReceiveRequest{a.receive(1, 0, 8)})
	require.ErrorIs(t, err, verbs.ErrState)
	require.Zero(t, n)
	require.NoError(t, a.pair.Modify(steps[0]))
	send(verbs.ErrState)
	a.postReceive(a.receive(1, 0, 64))
	require.NoError(t, a.pair.Modify(steps[1]))
	send(verbs.ErrState)
	a.postReceive(a.receive(2, 64, 64))
	// A pair receives in ReadyToReceive already.
	b.connect(a, s, 1)
	b.post(b.send(7, 0, 8))
	b.requireSuccess(b.poll(b.sends, 1)[0], 7, verbs.Sent)
	a.requireSuccess(a.poll(a.recvs, 1)[0], 1, verbs.Received)
	require.NoError(t, a.pair.Modify(steps[2]))
	a.requireState(verbs.ReadyToSend)
}

// testFlush checks that in Error all outstanding and later requests complete as flushed, in
// order, signaled or not.
func testFlush(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, options{config: verbs.PairConfig{Transport: tr}, retries: 6, rnr: 7})
	for i := range uint64(5) {
		b.postReceive(b.receive(i, 0, 64))
	}
	a.post(a.send(1, 0, 8))
	a.requireSuccess(a.poll(a.sends, 1)[0], 1, verbs.Sent)
	b.requireSuccess(b.poll(b.recvs, 1)[0], 0, verbs.Received)
	require.NoError(t, b.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	b.requireFlushed(b.poll(b.recvs, 4), 1, 2, 3, 4)
	if r.Exact { // rxe does not check its receive queue before a packet comes
		b.postReceive(b.receive(5, 0, 64))
		b.requireFlushed(b.poll(b.recvs, 1), 5)
	}
	w := b.send(6, 0, 8)
	w.Signaled = false
	b.post(w, b.send(7, 0, 8))
	b.requireFlushed(b.poll(b.sends, 2), 6, 7)
	// The other end is not notified. RC detects the error, UC never does. (With 7 retries rxe
	// would retry for ever.)
	a.post(a.send(2, 0, 8))
	c := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.requireSuccess(c, 2, verbs.Sent)
		return
	}
	require.Equal(t, verbs.StatusRetriesExceeded, c.Status, "%v", c.Status)
}

// testReset checks that Reset restores a new pair, which can be connected again.
func testReset(t *testing.T, r rig, tr verbs.Transport) {
	s := reliable(tr)
	a, b := openBoth(t, r, s)
	for round := range 3 {
		for i := range uint64(3) {
			b.postReceive(b.receive(i, 0, 64))
		}
		a.post(a.send(1, 0, 8), a.send(2, 0, 8))
		a.poll(a.sends, 2)
		for i, c := range b.poll(b.recvs, 2) {
			b.requireSuccess(c, uint64(i), verbs.Received)
		}
		for n, e := range []*end{a, b} {
			if round == 1 {
				require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
				if n == 1 {
					e.requireFlushed(e.poll(e.recvs, 1), 2)
				}
			}
			require.NoError(t, e.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
			e.requireEmpty(e.recvs)
			e.psn = (e.psn + 1000) & 0xffffff
		}
		a.connect(b, s, 0)
		b.connect(a, s, 1)
	}
}

// testPathMTU connects ends with different packet sizes. RC reports it, UC drops the message.
func testPathMTU(t *testing.T, r rig, tr verbs.Transport) {
	if !r.Exact {
		t.Skip("stacks differ")
	}
	s := options{config: verbs.PairConfig{Transport: tr}, retries: 6, rnr: 7}
	s.modify = func(n int, at *verbs.Attributes) {
		if n == 1 && at.Mask&verbs.MaskPathMTU != 0 {
			at.PathMTU = 512
			if r.mtu(verbs.Port{MTU: 4096}) == 512 {
				at.PathMTU = 256
			}
		}
	}
	a, b := openBoth(t, r, s)
	b.postReceive(b.receive(1, 0, 8192))
	a.post(a.send(1, 0, 5000))
	c := a.poll(a.sends, 1)[0]
	if tr == verbs.UC {
		a.requireSuccess(c, 1, verbs.Sent)
		b.requireEmpty(b.recvs)
		return
	}
	require.Equal(t, verbs.StatusRemoteInvalid, c.Status, "%v", c.Status)
	b.requireFlushed(b.poll(b.recvs, 1), 1)
}

// quickToFail are options with which RC pairs fail soon: 65 µs × 2^(8−4), three times.
func quickToFail(tr verbs.Transport) options {
	return options{config: verbs.PairConfig{Transport: tr}, timeout: 8, retries: 2, rnr: 7}
}

// sendUnanswered sends a message that the other end does not accept. RC fails in bounded time, UC
// does not notice. others are statuses of stacks that detect the cause locally.
func (e *end) sendUnanswered(id uint64, others ...verbs.Status) {
	e.t.Helper()
	e.post(e.send(id, 0, 3000))
	c := e.poll(e.sends, 1)[0]
	require.Equal(e.t, id, c.ID)
	want := verbs.StatusRetriesExceeded
	if e.tr == verbs.UC {
		want = verbs.StatusOK
	}
	e.requireStatus(c, want, others...)
	if c.Status != verbs.StatusOK {
		e.requireState(verbs.Error)
	}
}

// testWrongNumber connects to a queue pair number that does not exist.
func testWrongNumber(t *testing.T, r rig, tr verbs.Transport) {
	s := quickToFail(tr)
	s.modify = func(n int, at *verbs.Attributes) {
		if n == 0 && at.Mask&verbs.MaskRemote != 0 {
			at.Remote ^= 0x7ff000
		}
	}
	a, b := openBoth(t, r, s)
	b.postReceive(b.receive(1, 0, 4096))
	a.sendUnanswered(1)
	b.requireEmpty(b.recvs)
	b.requireState(verbs.ReadyToSend)
}

// testWrongPSN connects ends with different first packet numbers. RC never delivers. UC accepts
// the first packet of any message.
func testWrongPSN(t *testing.T, r rig, tr verbs.Transport) {
	for name, by := range map[string]uint32{"ahead": 40, "behind": 1<<24 - 40} {
		t.Run(name, func(t *testing.T) {
			s := quickToFail(tr)
			s.modify = func(n int, at *verbs.Attributes) {
				if n == 1 && at.Mask&verbs.MaskReceivePSN != 0 {
					at.ReceivePSN = (at.ReceivePSN + by) & 0xffffff
				}
			}
			a, b := openBoth(t, r, s)
			b.postReceive(b.receive(1, 0, 4096))
			a.sendUnanswered(1, verbs.StatusOK) // rxe acknowledges an earlier packet as a duplicate
			if tr == verbs.RC {
				b.requireEmpty(b.recvs)
				return
			}
			b.requireSuccess(b.poll(b.recvs, 1)[0], 1, verbs.Received)
		})
	}
}
