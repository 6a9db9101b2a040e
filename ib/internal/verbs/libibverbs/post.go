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

// poster encodes requests in C's layout, in memory of its own, and posts them.
type poster[WR any] struct {
	mu         sync.Mutex
	closed     bool
	kind       string // "send" or "receive"
	depth      int
	call       call
	bad        uintptr
	requests   []WR
	elements   []cSGE // of request i from i*perRequest on
	perRequest int
}

// prepare allocates memory for the requests of a pair. fn is the driver's function.
func (s *poster[WR]) prepare(p *pair, kind string, fn uintptr, depth, perRequest int) {
	s.kind, s.depth = kind, depth
	s.perRequest = perRequest
	s.requests = make([]WR, min(max(1, depth), postBatch))
	s.elements = make([]cSGE, len(s.requests)*max(1, perRequest))
	s.call.fn = fn
	s.call.args = [6]uintptr{p.c, uintptr(unsafe.Pointer(&s.requests[0])), uintptr(unsafe.Pointer(&s.bad))}
}

// encodeElements encodes the elements of request n. It returns their address and their bytes.
func (s *poster[WR]) encodeElements(n int, from []verbs.Element) (list uintptr, bytes uint64, err error) {
	if len(from) > s.perRequest {
		return 0, 0, fmt.Errorf("%w: %d elements of a %s; the pair was made for %d",
			verbs.ErrLimit, len(from), s.kind, s.perRequest)
	}
	to := s.elements[n*s.perRequest:]
	for i, e := range from {
		to[i] = cSGE{e.Addr, e.Length, e.Key}
		bytes += uint64(e.Length)
	}
	if len(to) > 0 {
		list = uintptr(unsafe.Pointer(&to[0]))
	}
	return list, bytes, nil
}

// post passes n encoded requests to the driver. It returns the number posted.
func (s *poster[WR]) post(p *pair, n int) (int, error) {
	first := uintptr(unsafe.Pointer(&s.requests[0]))
	s.bad = first
	s.call.do()
	errno := errnoOf(int32(s.call.result))
	if errno == 0 {
		return n, nil
	}
	n = postedBefore(s.bad-first, unsafe.Sizeof(s.requests[0]), n)
	if errno == syscall.ENOMEM || errno == syscall.EAGAIN {
		return n, fmt.Errorf("%w: pair %#x has its %d %ss outstanding", verbs.ErrQueueFull, p.number, s.depth, s.kind)
	}
	return n, p.domain.device.opError(fmt.Sprintf("post a %s to pair %#x", s.kind, p.number), errno)
}

// postedBefore returns the number of requests before the bad one.
func postedBefore(offset, size uintptr, n int) int { return int(min(offset/size, uintptr(n))) }

// encoder is a poster for requests of one kind. encode encodes a prefix of the requests that
// there is room for, and ends before a request that cannot be posted.
type encoder[R any] interface {
	encode(requests []R) (n int, refused error)
	post(p *pair, n int) (int, error)
}

// postAll posts a prefix of requests, in batches. It returns the number posted and why the next
// request was refused.
func postAll[R any, E encoder[R]](s E, p *pair, requests []R) (done int, err error) {
	for done < len(requests) {
		n, refused := s.encode(requests[done:])
		if n > 0 {
			posted, err := s.post(p, n)
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

type sendPoster struct {
	poster[cSendWR]
	inline int
}

func (p *pair) PostSend(requests []verbs.SendRequest) (int, error) {
	s := &p.sends
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	// The driver would queue a request posted too early, and send it later.
	if state := verbs.PairState(p.state.Load()); state < verbs.ReadyToSend {
		return 0, fmt.Errorf("%w: a send posted to pair %#x in %v", verbs.ErrState, p.number, state)
	}
	return postAll(s, p, requests)
}

func (s *sendPoster) encode(requests []verbs.SendRequest) (n int, refused error) {
	for n < min(len(requests), len(s.requests)) {
		r, w := &requests[n], &s.requests[n]
		list, bytes, err := s.encodeElements(n, r.Elements)
		if err != nil {
			return n, err
		}
		if r.Operation > verbs.SendImmediate {
			return n, fmt.Errorf("%w: operation %d", verbs.ErrLimit, r.Operation)
		}
		w.wrID, w.opcode = r.ID, int32(r.Operation)
		w.immData = swapOrder(r.Immediate)
		w.remoteAddr, w.rkey = r.RemoteAddr, r.RemoteKey
		w.sgList, w.numSGE = list, int32(len(r.Elements))
		w.sendFlags = 0
		if r.Signaled {
			w.sendFlags |= sendSignaled
		}
		if r.Solicited {
			w.sendFlags |= sendSolicited
		}
		if r.Inline {
			if bytes > uint64(s.inline) {
				return n, fmt.Errorf("%w: %d bytes inline; the pair was made for %d", verbs.ErrLimit, bytes, s.inline)
			}
			w.sendFlags |= sendInline
		}
		if w.next = 0; n > 0 {
			s.requests[n-1].next = uintptr(unsafe.Pointer(w))
		}
		n++
	}
	return n, nil
}

type receivePoster struct{ poster[cRecvWR] }

func (p *pair) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	s := &p.receives
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	if verbs.PairState(p.state.Load()) == verbs.Reset {
		return 0, fmt.Errorf("%w: a receive posted to pair %#x in %v", verbs.ErrState, p.number, verbs.Reset)
	}
	return postAll(s, p, requests)
}

func (s *receivePoster) encode(requests []verbs.ReceiveRequest) (n int, refused error) {
	for n < min(len(requests), len(s.requests)) {
		r, w := &requests[n], &s.requests[n]
		list, _, err := s.encodeElements(n, r.Elements)
		if err != nil {
			return n, err
		}
		w.wrID = r.ID
		w.sgList, w.numSGE = list, int32(len(r.Elements))
		if w.next = 0; n > 0 {
			s.requests[n-1].next = uintptr(unsafe.Pointer(w))
		}
		n++
	}
	return n, nil
}
