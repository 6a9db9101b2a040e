package verbs_test

import (
	"cmp"
	"errors"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// end is one end of a connection with its objects.
type end struct {
	t       *testing.T
	rig     rig
	device  verbs.Device
	domain  verbs.Domain
	channel verbs.Channel
	sends   verbs.CompletionQueue
	recvs   verbs.CompletionQueue
	pair    verbs.Pair
	tr      verbs.Transport // of the pair
	memory  []byte
	region  verbs.Region
	port    verbs.Port
	gid     verbs.GID
	psn     uint32
}

// options are a test's options for its two ends.
type options struct {
	config      verbs.PairConfig // of pairs: transport, sizes
	bytes       int              // of each region (0: 256 KiB)
	depth       int              // of completion queues (0: 512)
	access      verbs.Access     // of the region (0: all)
	modify      func(e int, a *verbs.Attributes)
	timeout     uint8 // of RC (0: 14)
	retries     uint8
	rnr         uint8 // retries
	unconnected bool  // pairs stay in Reset
	oneQueue    bool  // completions of both kinds in one queue
}

// reliable are the options of most tests: RC pairs never give up.
func reliable(tr verbs.Transport) options {
	return options{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7}
}

const (
	allAccess   = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	maxRequests = 64
)

// openBoth opens two ends and connects them. They are closed with the test.
func openBoth(t *testing.T, r rig, s options) (a, b *end) {
	t.Helper()
	a, b = open(t, r, s, 0), open(t, r, s, 1)
	if !s.unconnected {
		a.connect(b, s, 0)
		b.connect(a, s, 1)
	}
	return a, b
}

func open(t *testing.T, r rig, s options, n int) *end {
	t.Helper()
	e := &end{t: t, rig: r, psn: uint32(0xfffff0 + n*5)} // wraps soon
	var err error
	e.device, err = r.Provider.Open(r.Devices[n])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.device.Close(), "device") })
	e.port, err = e.device.Port(r.Port)
	require.NoError(t, err)
	e.gid, err = e.device.GID(r.Port, r.GIDIndex)
	require.NoError(t, err)
	e.domain, err = e.device.AllocDomain()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.domain.Close(), "domain") })
	e.channel, err = e.device.CreateChannel()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.channel.Close(), "channel") })
	depth := cmp.Or(s.depth, 512)
	e.sends = e.queue(depth)
	e.recvs = e.sends
	if !s.oneQueue {
		e.recvs = e.queue(depth)
	}
	e.memory, err = verbs.Allocate(cmp.Or(s.bytes, 256<<10))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, verbs.Free(e.memory)) })
	e.region, err = e.domain.Register(e.memory, cmp.Or(s.access, allAccess))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.region.Close(), "region") })
	e.pair, e.tr = e.create(s.config), s.config.Transport
	return e
}

func (e *end) queue(depth int) verbs.CompletionQueue {
	e.t.Helper()
	q, err := e.device.CreateQueue(depth, e.channel)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, q.Close(), "completion queue") })
	return q
}

// create creates a pair; sizes of 0 take a default.
func (e *end) create(c verbs.PairConfig) verbs.Pair {
	e.t.Helper()
	c.SendRequests = cmp.Or(c.SendRequests, maxRequests)
	c.ReceiveRequests = cmp.Or(c.ReceiveRequests, maxRequests)
	c.SendElements = cmp.Or(c.SendElements, 3)
	c.ReceiveElements = cmp.Or(c.ReceiveElements, 3)
	c.Send, c.Receive = e.sends, e.recvs
	p, err := e.domain.CreatePair(c)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, p.Close(), "pair") })
	return p
}

// mtu returns the MTU of the paths.
func (r rig) mtu(p verbs.Port) int { return cmp.Or(r.MTU, min(1024, p.MTU)) }

// steps returns the attributes that take a pair to Init, ReadyToReceive and ReadyToSend, exactly
// as its transport requires them.
func (e *end) steps(to *end, s options) [3]verbs.Attributes {
	initial := verbs.Attributes{
		Mask: verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess, State: verbs.Init,
		Port: e.rig.Port, Access: verbs.LocalWrite | verbs.RemoteWrite,
	}
	receive := verbs.Attributes{
		Mask:  verbs.MaskState | verbs.MaskPath | verbs.MaskPathMTU | verbs.MaskRemote | verbs.MaskReceivePSN,
		State: verbs.ReadyToReceive, PathMTU: e.rig.mtu(e.port), Remote: to.pair.Number(), ReceivePSN: to.psn,
		Path: verbs.Path{
			LID: to.port.LID, Global: e.port.Layer == verbs.LayerEthernet, Destination: to.gid.Addr,
			SourceIndex: e.rig.GIDIndex, HopLimit: 1,
		},
	}
	send := verbs.Attributes{Mask: verbs.MaskState | verbs.MaskSendPSN, State: verbs.ReadyToSend, SendPSN: e.psn}
	if e.tr == verbs.RC {
		receive.Mask |= verbs.MaskPendingReads | verbs.MaskRNRTimer
		receive.PendingReads, receive.RNRTimer = 1, 12
		send.Mask |= verbs.MaskTimeout | verbs.MaskRetries | verbs.MaskRNRRetries | verbs.MaskInitiatedReads
		send.Timeout, send.InitiatedReads = cmp.Or(s.timeout, 14), 1
		send.Retries, send.RNRRetries = s.retries, s.rnr
	}
	return [3]verbs.Attributes{initial, receive, send}
}

// connect takes the pair through its states. s.modify may change the attributes.
func (e *end) connect(to *end, s options, n int) {
	e.t.Helper()
	for _, a := range e.steps(to, s) {
		if s.modify != nil {
			s.modify(n, &a)
		}
		var err error
		e.await("the address of the other end", func() bool { // Linux looks for it for a limited time
			err = e.pair.Modify(a)
			return !errors.Is(err, unix.ETIMEDOUT)
		})
		require.NoError(e.t, err, "to %v", a.State)
	}
	e.requireState(verbs.ReadyToSend)
}

func (e *end) requireState(want verbs.PairState) {
	e.t.Helper()
	s, err := e.pair.State()
	require.NoError(e.t, err)
	require.Equal(e.t, want, s)
}

// awaitState waits for a state.
func (e *end) awaitState(want verbs.PairState) {
	e.t.Helper()
	e.await("state "+want.String(), func() bool {
		s, err := e.pair.State()
		require.NoError(e.t, err)
		return s == want
	})
}

// await polls a condition with increasing sleeps.
func (e *end) await(what string, done func() bool) {
	e.t.Helper()
	await.Until(e.t, func() bool {
		for range 100 { // without sleeps at first
			if done() {
				return true
			}
		}
		return false
	}, "%s", what)
}

// poll waits for n completions of a queue, in the order of the queue.
func (e *end) poll(q verbs.CompletionQueue, n int) []verbs.Completion {
	e.t.Helper()
	var out []verbs.Completion
	buf := make([]verbs.Completion, 4)
	e.await("completions", func() bool {
		k, err := q.Poll(buf[:min(len(buf), n-len(out))])
		require.NoError(e.t, err)
		out = append(out, buf[:k]...)
		return len(out) == n
	})
	return out
}

// requireEmpty requires that a queue has no completion.
func (e *end) requireEmpty(q verbs.CompletionQueue) {
	e.t.Helper()
	var buf [1]verbs.Completion
	n, err := q.Poll(buf[:])
	require.NoError(e.t, err)
	require.Zero(e.t, n, "%+v", buf[0])
}

// element returns an element of the end's region.
func (e *end) element(at, n int) verbs.Element {
	return verbs.Element{Addr: e.region.Addr() + uint64(at), Length: uint32(n), Key: e.region.LocalKey()}
}

func (e *end) post(ws ...verbs.SendRequest) {
	e.t.Helper()
	n, err := e.pair.PostSend(ws)
	require.NoError(e.t, err)
	require.Equal(e.t, len(ws), n)
}

func (e *end) postReceive(ws ...verbs.ReceiveRequest) {
	e.t.Helper()
	n, err := e.pair.PostReceive(ws)
	require.NoError(e.t, err)
	require.Equal(e.t, len(ws), n)
}

// send returns a signaled send of bytes of the region.
func (e *end) send(id uint64, at, n int) verbs.SendRequest {
	return verbs.SendRequest{ID: id, Operation: verbs.Send, Elements: []verbs.Element{e.element(at, n)}, Signaled: true}
}

// write returns a signaled write of bytes of the region into another end's region.
func (e *end) write(id uint64, at, n int, to *end, there int) verbs.SendRequest {
	w := e.send(id, at, n)
	w.Operation = verbs.Write
	w.RemoteAddr, w.RemoteKey = to.region.Addr()+uint64(there), to.region.RemoteKey()
	return w
}

func (e *end) receive(id uint64, at, n int) verbs.ReceiveRequest {
	return verbs.ReceiveRequest{ID: id, Elements: []verbs.Element{e.element(at, n)}}
}

// fill writes a pattern that differs between seeds.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

// requireSuccess checks a completion that succeeded.
func (e *end) requireSuccess(c verbs.Completion, id uint64, kind verbs.CompletionKind) {
	e.t.Helper()
	require.Equal(e.t, verbs.StatusOK, c.Status, "%v", c.Status)
	require.Equal(e.t, id, c.ID)
	require.Equal(e.t, kind, c.Kind)
	require.Equal(e.t, e.pair.Number(), c.Pair)
}

// requireFlushed checks that these requests, in order, were flushed.
func (e *end) requireFlushed(cs []verbs.Completion, ids ...uint64) {
	e.t.Helper()
	require.Len(e.t, cs, len(ids))
	for i, c := range cs {
		require.Equal(e.t, verbs.StatusFlushed, c.Status, "request %d: %v", c.ID, c.Status)
		require.Equal(e.t, ids[i], c.ID)
	}
}

// requireStatus requires the specification's status on an exact rig, else one of several.
func (e *end) requireStatus(c verbs.Completion, want verbs.Status, others ...verbs.Status) {
	e.t.Helper()
	if e.rig.Exact {
		others = nil
	}
	require.Contains(e.t, append(others, want), c.Status, "%v", c.Status)
}

// requireClosed requires that no object has leaked.
func (r rig) requireClosed(t *testing.T) {
	t.Helper()
	if r.Open != nil {
		require.Zero(t, r.Open(), "objects of the test are still open")
	}
}

func kind(w verbs.SendRequest) verbs.CompletionKind {
	if w.Operation == verbs.Write || w.Operation == verbs.WriteImmediate {
		return verbs.Written
	}
	return verbs.Sent
}
