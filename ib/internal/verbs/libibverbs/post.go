//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// postBatch bounds the requests that one call posts.
const postBatch = 64

// poster encodes requests R as C's WR, in memory of its own, and posts them.
type poster[WR, R any] struct {
	pair  *pair
	kind  string          // "send" or "receive"
	ready verbs.PairState // the first state in which requests may be posted
	// fill fills in a WR, whose beginning is a cRecvWR that encode fills in, and returns its elements.
	fill func(w *WR, r *R) ([]verbs.Element, error)

	mu         sync.Mutex
	closed     bool
	depth      int
	call       call
	bad        uintptr
	requests   []WR
	elements   []cSGE // of request i from i*perRequest on
	perRequest int
}

// prepare allocates memory for the requests of a pair. fn is the driver's function.
func (s *poster[WR, R]) prepare(fn uintptr, depth, perRequest int) {
	s.depth, s.perRequest = depth, perRequest
	s.requests = make([]WR, min(max(1, depth), postBatch))
	s.elements = make([]cSGE, len(s.requests)*max(1, perRequest))
	s.call.fn = fn
	s.call.args = [6]uintptr{s.pair.c, uintptr(unsafe.Pointer(&s.requests[0])), uintptr(unsafe.Pointer(&s.bad))}
}

// post posts a prefix of requests, in batches. It returns the number posted and why the next
// request was refused.
func (s *poster[WR, R]) post(requests []R) (done int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	// The driver would queue a request posted too early, and send it later.
	if state := verbs.PairState(s.pair.state.Load()); state < s.ready {
		return 0, fmt.Errorf("%w: a %s posted to pair %#x in %v", verbs.ErrState, s.kind, s.pair.number, state)
	}
	for done < len(requests) {
		n, refused := s.encode(requests[done:])
		if n > 0 {
			posted, err := s.submit(n)
			if done += posted; err != nil {
				return done, err
			}
		}
		if refused != nil {
			return done, refused
		}
	}
	return done, nil
}

// encode encodes a prefix of the requests that there is room for. It ends before a request that
// cannot be posted.
func (s *poster[WR, R]) encode(requests []R) (n int, refused error) {
	var last *cRecvWR
	for n < min(len(requests), len(s.requests)) {
		w := &s.requests[n]
		from, err := s.fill(w, &requests[n])
		if err != nil {
			return n, err
		}
		if len(from) > s.perRequest {
			return n, fmt.Errorf("%w: %d elements of a %s; the pair was made for %d",
				verbs.ErrLimit, len(from), s.kind, s.perRequest)
		}
		to := s.elements[n*s.perRequest:]
		for i, e := range from {
			to[i] = cSGE{e.Addr, e.Length, e.Key}
		}
		head := (*cRecvWR)(unsafe.Pointer(w))
		head.next, head.sgList, head.numSGE = 0, uintptr(unsafe.Pointer(unsafe.SliceData(to))), int32(len(from))
		if last != nil {
			last.next = uintptr(unsafe.Pointer(w))
		}
		last = head
		n++
	}
	return n, nil
}

// submit passes n encoded requests to the driver. It returns the number posted.
func (s *poster[WR, R]) submit(n int) (int, error) {
	first := uintptr(unsafe.Pointer(&s.requests[0]))
	s.bad = first
	s.call.do()
	errno := errnoOf(int32(s.call.result))
	if errno == 0 {
		return n, nil
	}
	n = postedBefore(s.bad-first, unsafe.Sizeof(s.requests[0]), n)
	number := s.pair.number
	if errno == syscall.ENOMEM || errno == syscall.EAGAIN {
		return n, fmt.Errorf("%w: pair %#x has its %d %ss outstanding", verbs.ErrQueueFull, number, s.depth, s.kind)
	}
	return n, s.pair.domain.device.opError(fmt.Sprintf("post a %s to pair %#x", s.kind, number), errno)
}

// postedBefore returns the number of requests before the bad one.
func postedBefore(offset, size uintptr, n int) int { return int(min(offset/size, uintptr(n))) }

func fillSend(w *cSendWR, r *verbs.SendRequest) ([]verbs.Element, error) {
	if r.Operation > verbs.SendImmediate {
		return nil, fmt.Errorf("%w: operation %d", verbs.ErrLimit, r.Operation)
	}
	w.wrID, w.opcode = r.ID, int32(r.Operation)
	w.immData = swapOrder(r.Immediate)
	w.remoteAddr, w.rkey = r.RemoteAddr, r.RemoteKey
	w.sendFlags = 0
	if r.Signaled {
		w.sendFlags = sendSignaled
	}
	return r.Elements, nil
}

func fillReceive(w *cRecvWR, r *verbs.ReceiveRequest) ([]verbs.Element, error) {
	w.wrID = r.ID
	return r.Elements, nil
}

func (p *pair) PostSend(requests []verbs.SendRequest) (int, error) { return p.sends.post(requests) }

func (p *pair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	return p.receives.post(requests)
}
