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

// postBatch is the most requests that one call posts.
const postBatch = 64

// sendPoster lays send requests out for C, in memory of its own, and posts them.
type sendPoster struct {
	mu       sync.Mutex
	closed   bool
	call     call
	bad      uintptr
	requests []cSendWR
	elements []cSGE // of request i from i*perWR
	perWR    int
	inline   int
}

func (s *sendPoster) prepare(p *pair) {
	s.perWR, s.inline = p.config.SendElements, p.config.InlineBytes
	s.requests = make([]cSendWR, min(max(1, p.config.SendRequests), postBatch))
	s.elements = make([]cSGE, len(s.requests)*max(1, s.perWR))
	s.call.fn = p.domain.device.ops.ops.postSend
	s.call.args = [6]uintptr{p.c, uintptr(unsafe.Pointer(&s.requests[0])), uintptr(unsafe.Pointer(&s.bad))}
}

// PostSend implements verbs.Pair.
func (p *pair) PostSend(requests []verbs.SendRequest) (int, error) {
	s := &p.sends
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	// The driver queues what is posted too early, and sends it later.
	if state := verbs.PairState(p.state.Load()); state < verbs.ReadyToSend {
		return 0, fmt.Errorf("%w: a send posted to pair %#x in %v", verbs.ErrState, p.number, state)
	}
	return postAll(s, p, requests)
}

// requester lays requests of one kind out and hands them to the driver.
type requester[R any] interface {
	encode(requests []R) (n int, refused error)
	post(p *pair, n int) (int, error)
}

// postAll posts a prefix of requests, as many at a time as there is room to lay out,
// and tells how long it is and why the next was refused.
func postAll[R any, Q requester[R]](s Q, p *pair, requests []R) (done int, err error) {
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

// encode lays out a prefix that fits, ending before one that cannot be posted.
func (s *sendPoster) encode(requests []verbs.SendRequest) (n int, refused error) {
	for n < min(len(requests), len(s.requests)) {
		r, w := &requests[n], &s.requests[n]
		if len(r.Elements) > s.perWR {
			return n, fmt.Errorf("%w: %d elements of a send; the pair was made for %d", verbs.ErrLimit, len(r.Elements), s.perWR)
		}
		if r.Operation > verbs.SendImmediate {
			return n, fmt.Errorf("%w: operation %d", verbs.ErrLimit, r.Operation)
		}
		w.wrID, w.opcode, w.sendFlags = r.ID, int32(r.Operation), 0
		w.immData, w.remoteAddr, w.rkey = swapOrder(r.Immediate), r.RemoteAddr, r.RemoteKey
		if r.Signaled {
			w.sendFlags |= sendSignaled
		}
		if r.Solicited {
			w.sendFlags |= sendSolicited
		}
		list := s.elements[n*s.perWR:]
		bytes := copyElements(list, r.Elements)
		if r.Inline {
			if bytes > uint64(s.inline) {
				return n, fmt.Errorf("%w: %d bytes inline; the pair was made for %d", verbs.ErrLimit, bytes, s.inline)
			}
			w.sendFlags |= sendInline
		}
		w.sgList, w.numSGE = listAddress(list), int32(len(r.Elements))
		if w.next = 0; n > 0 {
			s.requests[n-1].next = uintptr(unsafe.Pointer(w))
		}
		n++
	}
	return n, nil
}

// post hands n requests to the driver.
func (s *sendPoster) post(p *pair, n int) (int, error) {
	first := uintptr(unsafe.Pointer(&s.requests[0]))
	s.bad = first
	s.call.do()
	errno := errnoOf(int32(s.call.result))
	if errno == 0 {
		return n, nil
	}
	return postedBefore(s.bad-first, unsafe.Sizeof(s.requests[0]), n), p.postFailure("send", p.config.SendRequests, errno)
}

// receivePoster is the same for receive requests.
type receivePoster struct {
	mu       sync.Mutex
	closed   bool
	call     call
	bad      uintptr
	requests []cRecvWR
	elements []cSGE
	perWR    int
}

func (s *receivePoster) prepare(p *pair) {
	s.perWR = p.config.ReceiveElements
	s.requests = make([]cRecvWR, min(max(1, p.config.ReceiveRequests), postBatch))
	s.elements = make([]cSGE, len(s.requests)*max(1, s.perWR))
	s.call.fn = p.domain.device.ops.ops.postRecv
	s.call.args = [6]uintptr{p.c, uintptr(unsafe.Pointer(&s.requests[0])), uintptr(unsafe.Pointer(&s.bad))}
}

// PostReceive implements verbs.Pair.
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
		if len(r.Elements) > s.perWR {
			return n, fmt.Errorf("%w: %d elements of a receive; the pair was made for %d", verbs.ErrLimit, len(r.Elements), s.perWR)
		}
		list := s.elements[n*s.perWR:]
		copyElements(list, r.Elements)
		w.wrID, w.sgList, w.numSGE = r.ID, listAddress(list), int32(len(r.Elements))
		if w.next = 0; n > 0 {
			s.requests[n-1].next = uintptr(unsafe.Pointer(w))
		}
		n++
	}
	return n, nil
}

func (s *receivePoster) post(p *pair, n int) (int, error) {
	first := uintptr(unsafe.Pointer(&s.requests[0]))
	s.bad = first
	s.call.do()
	errno := errnoOf(int32(s.call.result))
	if errno == 0 {
		return n, nil
	}
	return postedBefore(s.bad-first, unsafe.Sizeof(s.requests[0]), n), p.postFailure("receive", p.config.ReceiveRequests, errno)
}

// prefix is how many requests were posted before the bad one.
func postedBefore(offset, size uintptr, n int) int { return int(min(offset/size, uintptr(n))) }

// copyElements returns the bytes that they name.
func copyElements(to []cSGE, from []verbs.Element) (bytes uint64) {
	for i, e := range from {
		to[i] = cSGE{e.Addr, e.Length, e.Key}
		bytes += uint64(e.Length)
	}
	return bytes
}

func listAddress(list []cSGE) uintptr {
	if len(list) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&list[0]))
}

func (p *pair) postFailure(what string, most int, errno syscall.Errno) error {
	if errno == syscall.ENOMEM || errno == syscall.EAGAIN {
		return fmt.Errorf("%w: pair %#x has its %d %ss outstanding", verbs.ErrQueueFull, p.number, most, what)
	}
	return p.domain.device.opError(fmt.Sprintf("post a %s to pair %#x", what, p.number), errno)
}
