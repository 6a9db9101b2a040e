//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// testPoster returns a poster without a library, which only encodes. It must not be on a
// goroutine's stack, which moves.
func testPoster(t *testing.T) *poster[cSendWR, verbs.SendRequest] {
	s := &poster[cSendWR, verbs.SendRequest]{fill: fillSend}
	s.requests, s.elements = make([]cSendWR, 4), make([]cSGE, 8)
	s.perRequest = 2
	t.Cleanup(func() { runtime.KeepAlive(s) })
	return s
}

// The first byte of the immediate data on the wire is the most significant one, as other
// programs expect.
func TestImmediate(t *testing.T) {
	s := testPoster(t)
	n, err := s.encode([]verbs.SendRequest{{Operation: verbs.SendImmediate, Immediate: 0x01020304}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, [4]byte{1, 2, 3, 4}, *(*[4]byte)(unsafe.Pointer(&s.requests[0].immData)))
	w := cWC{opcode: wcRecv, wcFlags: wcWithImm, immData: s.requests[0].immData}
	var c verbs.Completion
	w.read(&c)
	require.True(t, c.HasImmediate)
	require.EqualValues(t, 0x01020304, c.Immediate)
}

// Requests are chained up to the first that cannot be posted, and no field of an earlier batch
// remains.
func TestEncode(t *testing.T) {
	s := testPoster(t)
	e := []verbs.Element{{Addr: 4096, Length: 10, Key: 3}, {Addr: 8192, Length: 7, Key: 4}}
	write := verbs.SendRequest{
		ID: 1, Operation: verbs.WriteImmediate, Elements: e, Signaled: true, RemoteAddr: 77, RemoteKey: 5,
	}
	n, err := s.encode([]verbs.SendRequest{write, write, write, write, write})
	require.NoError(t, err)
	require.Equal(t, 4, n, "as many as there is room for")
	for i := range s.requests {
		w := &s.requests[i]
		require.EqualValues(t, verbs.WriteImmediate, w.opcode)
		require.EqualValues(t, sendSignaled, w.sendFlags)
		require.EqualValues(t, 2, w.numSGE)
		require.Equal(t, uintptr(unsafe.Pointer(&s.elements[2*i])), w.sgList)
		require.Equal(t, cSGE{8192, 7, 4}, s.elements[2*i+1])
		if i+1 < len(s.requests) {
			require.Equal(t, uintptr(unsafe.Pointer(&s.requests[i+1])), w.next)
		}
	}
	require.Zero(t, s.requests[3].next)

	long := verbs.SendRequest{ID: 9, Operation: verbs.Send, Elements: append(e, e...)}
	n, err = s.encode([]verbs.SendRequest{{ID: 8, Operation: verbs.Send}, long})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.Equal(t, 1, n)
	require.Equal(t, cSendWR{wrID: 8, opcode: int32(verbs.Send), sgList: s.requests[0].sgList}, s.requests[0])
	_, err = s.encode([]verbs.SendRequest{{Operation: verbs.SendImmediate + 1}})
	require.ErrorIs(t, err, verbs.ErrLimit)
}

func TestEncodeAllocates(t *testing.T) {
	s := testPoster(t)
	requests := make([]verbs.SendRequest, 4)
	for i := range requests {
		requests[i] = verbs.SendRequest{Operation: verbs.Send, Elements: []verbs.Element{{Addr: 1, Length: 1, Key: 1}}}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.encode(requests) }))
	wc, out := make([]cWC, 4), make([]verbs.Completion, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range wc {
			wc[i].read(&out[i])
		}
	}))
}

func TestPrefix(t *testing.T) {
	require.Equal(t, 0, postedBefore(0, 128, 5))
	require.Equal(t, 3, postedBefore(3*128, 128, 5))
	require.Equal(t, 5, postedBefore(^uintptr(0), 128, 5), "a place outside the batch")
}
