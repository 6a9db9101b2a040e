package suite

import (
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/stretchr/testify/require"
)

// end is one side of a connection, with everything it needs.
type end struct {
	t       *testing.T
	rig     Rig
	device  verbs.Device
	domain  verbs.Domain
	channel verbs.Channel
	sends   verbs.CompletionQueue
	recvs   verbs.CompletionQueue
	pair    verbs.Pair
	memory  []byte
	region  verbs.Region
	port    verbs.Port
	gid     verbs.GID
	psn     uint32
}

// shape is what a test wants of its two ends.
type shape struct {
	config   verbs.PairConfig // of pairs: transport, sizes
	bytes    int              // of each region (0: 256 KiB)
	depth    int              // of completion queues (0: 512)
	access   verbs.Access     // of the region (0: all)
	unlike   func(e int, a *verbs.Attributes)
	timeout  uint8 // of RC (0: 14)
	retries  uint8
	rnr      uint8 // retries
	unjoined bool  // pairs stay in Reset
	oneQueue bool  // completions of both kinds in one queue
}

const (
	everything   = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	mostRequests = 64
)

// both opens two ends and joins them; they are closed with the test.
func both(t *testing.T, r Rig, s shape) (a, b *end) {
	t.Helper()
	a, b = open(t, r, s, 0), open(t, r, s, 1)
	if !s.unjoined {
		a.join(b, s, 0)
		b.join(a, s, 1)
	}
	return a, b
}

func open(t *testing.T, r Rig, s shape, n int) *end {
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
	depth := s.depth
	if depth == 0 {
		depth = 512
	}
	e.sends = e.queue(depth)
	e.recvs = e.sends
	if !s.oneQueue {
		e.recvs = e.queue(depth)
	}
	size := s.bytes
	if size == 0 {
		size = 256 << 10
	}
	e.memory, err = verbs.Allocate(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, verbs.Free(e.memory)) })
	access := s.access
	if access == 0 {
		access = everything
	}
	e.region, err = e.domain.Register(e.memory, access)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.region.Close(), "region") })
	e.pair = e.create(s.config)
	return e
}

func (e *end) queue(depth int) verbs.CompletionQueue {
	e.t.Helper()
	q, err := e.device.CreateQueue(depth, e.channel)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, q.Close(), "completion queue") })
	return q
}

// create makes a pair; zero sizes take those of most tests.
func (e *end) create(c verbs.PairConfig) verbs.Pair {
	e.t.Helper()
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.SendRequests, mostRequests)
	set(&c.ReceiveRequests, mostRequests)
	set(&c.SendElements, 3)
	set(&c.ReceiveElements, 3)
	set(&c.InlineBytes, 32)
	c.Send, c.Receive = e.sends, e.recvs
	p, err := e.domain.CreatePair(c)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, p.Close(), "pair") })
	return p
}

// mtu of the paths.
func (r Rig) mtu(p verbs.Port) int {
	if r.MTU != 0 {
		return r.MTU
	}
	return min(1024, p.MTU)
}

// steps are the attributes that take a pair to Init, to ReadyToReceive and to
// ReadyToSend, exactly as its transport wants them.
func (e *end) steps(to *end, s shape) [3]verbs.Attributes {
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
	if e.pair.Transport() == verbs.RC {
		receive.Mask |= verbs.MaskPendingReads | verbs.MaskRNRTimer
		receive.PendingReads, receive.RNRTimer = 1, 12
		send.Mask |= verbs.MaskTimeout | verbs.MaskRetries | verbs.MaskRNRRetries | verbs.MaskInitiatedReads
		send.Timeout, send.Retries, send.RNRRetries, send.InitiatedReads = 14, s.retries, s.rnr, 1
		if s.timeout != 0 {
			send.Timeout = s.timeout
		}
	}
	return [3]verbs.Attributes{initial, receive, send}
}

// join takes the pair through its states; s.unlike may spoil the attributes.
func (e *end) join(to *end, s shape, n int) {
	e.t.Helper()
	for _, a := range e.steps(to, s) {
		if s.unlike != nil {
			s.unlike(n, &a)
		}
		require.NoError(e.t, e.pair.Modify(a), "to %v", a.State)
	}
	e.inState(verbs.ReadyToSend)
}

func (e *end) inState(want verbs.PairState) {
	e.t.Helper()
	s, err := e.pair.State()
	require.NoError(e.t, err)
	require.Equal(e.t, want, s)
}

// reaches waits for a state.
func (e *end) reaches(want verbs.PairState) {
	e.t.Helper()
	e.until("state "+want.String(), func() bool {
		s, err := e.pair.State()
		require.NoError(e.t, err)
		return s == want
	})
}

// until waits for something, with pauses that let a busy machine do it.
func (e *end) until(what string, done func() bool) {
	e.t.Helper()
	await.Until(e.t, func() bool {
		for range 100 { // without a pause at first
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
	e.until("completions", func() bool {
		k, err := q.Poll(buf[:min(len(buf), n-len(out))])
		require.NoError(e.t, err)
		out = append(out, buf[:k]...)
		return len(out) == n
	})
	return out
}

// quiet says that a queue has nothing.
func (e *end) quiet(q verbs.CompletionQueue) {
	e.t.Helper()
	var buf [1]verbs.Completion
	n, err := q.Poll(buf[:])
	require.NoError(e.t, err)
	require.Zero(e.t, n, "%+v", buf[0])
}

// piece names bytes of the end's region.
func (e *end) piece(at, n int) verbs.Element {
	return verbs.Element{Addr: e.region.Addr() + uint64(at), Length: uint32(n), Key: e.region.LocalKey()}
}

func (e *end) post(ws ...verbs.SendRequest) {
	e.t.Helper()
	n, err := e.pair.PostSend(ws)
	require.NoError(e.t, err)
	require.Equal(e.t, len(ws), n)
}

func (e *end) expect(ws ...verbs.ReceiveRequest) {
	e.t.Helper()
	n, err := e.pair.PostReceive(ws)
	require.NoError(e.t, err)
	require.Equal(e.t, len(ws), n)
}

// send is a signaled send of bytes of the region.
func (e *end) send(id uint64, at, n int) verbs.SendRequest {
	return verbs.SendRequest{ID: id, Operation: verbs.Send, Elements: []verbs.Element{e.piece(at, n)}, Signaled: true}
}

// write is a signaled write of bytes of the region to a place in another's.
func (e *end) write(id uint64, at, n int, to *end, there int) verbs.SendRequest {
	w := e.send(id, at, n)
	w.Operation, w.RemoteAddr, w.RemoteKey = verbs.Write, to.region.Addr()+uint64(there), to.region.RemoteKey()
	return w
}

func (e *end) slot(id uint64, at, n int) verbs.ReceiveRequest {
	return verbs.ReceiveRequest{ID: id, Elements: []verbs.Element{e.piece(at, n)}}
}

// fill writes a pattern that no two seeds share.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

// ended checks a completion that succeeded.
func (e *end) ended(c verbs.Completion, id uint64, kind verbs.CompletionKind) {
	e.t.Helper()
	require.Equal(e.t, verbs.StatusOK, c.Status, "%v", c.Status)
	require.Equal(e.t, id, c.ID)
	require.Equal(e.t, kind, c.Kind)
	require.Equal(e.t, e.pair.Number(), c.Pair)
}

// flushed checks that completions are of these requests, in order, all flushed.
func (e *end) flushed(cs []verbs.Completion, ids ...uint64) {
	e.t.Helper()
	require.Len(e.t, cs, len(ids))
	for i, c := range cs {
		require.Equal(e.t, verbs.StatusFlushed, c.Status, "request %d: %v", c.ID, c.Status)
		require.Equal(e.t, ids[i], c.ID)
	}
}

// status wants the specification's status of a rig that is exact, one of several else.
func (e *end) status(c verbs.Completion, want verbs.Status, others ...verbs.Status) {
	e.t.Helper()
	if e.rig.Exact {
		others = nil
	}
	require.Contains(e.t, append(others, want), c.Status, "%v", c.Status)
}

// closed says that nothing has leaked.
func (r Rig) closed(t *testing.T) {
	t.Helper()
	if r.Open != nil {
		require.Zero(t, r.Open(), "what the test has opened is still open")
	}
}

func kind(w verbs.SendRequest) verbs.CompletionKind {
	if w.Operation == verbs.Write || w.Operation == verbs.WriteImmediate {
		return verbs.Written
	}
	return verbs.Sent
}
