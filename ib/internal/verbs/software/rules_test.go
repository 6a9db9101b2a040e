package software_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
)

// pollAll polls all completions of a queue.
func pollAll(t require.TestingT, q verbs.CompletionQueue) (out []verbs.Completion) {
	var got [16]verbs.Completion
	for {
		n, err := q.Poll(got[:])
		require.NoError(t, err)
		if n == 0 {
			return out
		}
		out = append(out, got[:n]...)
	}
}

func (s *endpoint) send(t require.TestingT, id uint64, n int, imm uint32) {
	w := verbs.SendRequest{ID: id, Operation: verbs.SendImmediate, Immediate: imm, Signaled: true}
	w.Elements = s.element(0, n)
	k, err := s.pair.PostSend([]verbs.SendRequest{w})
	require.NoError(t, err)
	require.Equal(t, 1, k)
}

func (s *endpoint) postReceive(t require.TestingT, id uint64, at, n int) {
	k, err := s.pair.PostReceive([]verbs.ReceiveRequest{{ID: id, Elements: s.element(at, n)}})
	require.NoError(t, err)
	require.Equal(t, 1, k)
}

// An overrun puts the queue and every pair that uses it in error.
func TestOverrun(t *testing.T) {
	f := software.NewFabric(software.Config{})
	l := openConnection(t, f, verbs.UC, 4, timers{})
	b := &l.ends[1]
	small, err := b.device.CreateQueue(2, b.channel)
	require.NoError(t, err)
	var pairs []verbs.Pair
	for range 2 {
		p, err := b.domain.CreatePair(verbs.PairConfig{
			Transport: verbs.RC, Send: small, Receive: small,
			SendRequests: 4, ReceiveRequests: 4, SendElements: 1, ReceiveElements: 1,
		})
		require.NoError(t, err)
		require.NoError(t, p.Modify(verbs.Attributes{
			Mask:  verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess,
			State: verbs.Init, Port: 1,
		}))
		pairs = append(pairs, p)
	}
	for i := range uint64(3) {
		_, err := pairs[0].PostReceive([]verbs.ReceiveRequest{{ID: i}})
		require.NoError(t, err)
	}
	require.NoError(t, pairs[0].Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	e, err := b.device.NextEvent()
	require.NoError(t, err)
	require.Equal(t, verbs.EventOther, e.Kind)
	e, err = b.device.NextEvent()
	require.NoError(t, err)
	require.Equal(t, verbs.EventPairFatal, e.Kind)
	for _, p := range pairs {
		s, err := p.State()
		require.NoError(t, err)
		require.Equal(t, verbs.Error, s)
	}
	var got [4]verbs.Completion
	n, err := small.Poll(got[:])
	require.NoError(t, err)
	require.Equal(t, 2, n, "what there was room for")
	_, err = small.Poll(got[:])
	require.ErrorContains(t, err, "overrun")
	for _, p := range pairs {
		require.NoError(t, p.Close())
	}
	require.NoError(t, small.Close())
}

// When an adapter is removed, outstanding requests are flushed, operations fail with ErrGone, and
// everything can be closed.
func TestRemove(t *testing.T) {
	f := software.NewFabric(software.Config{})
	l := openConnection(t, f, verbs.RC, 4, timers{8, 1, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	b.postReceive(t, 1, 0, 8)
	require.NoError(t, b.recvs.Arm())
	b.adapter.Remove()
	woken, err := b.channel.Wait()
	require.NoError(t, err)
	require.True(t, woken)
	var got [2]verbs.Completion
	n, err := b.recvs.Poll(got[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, verbs.StatusFlushed, got[0].Status)
	_, err = b.recvs.Poll(got[:])
	require.ErrorIs(t, err, verbs.ErrGone)
	var fatal bool
	for range 2 {
		e, err := b.device.NextEvent()
		require.NoError(t, err)
		fatal = fatal || e.Kind == verbs.EventDeviceFatal
	}
	require.True(t, fatal)
	_, err = b.pair.PostReceive(nil)
	require.ErrorIs(t, err, verbs.ErrGone)
	_, err = b.device.AllocDomain()
	require.ErrorIs(t, err, verbs.ErrGone)
	_, err = b.device.Port(1)
	require.ErrorIs(t, err, verbs.ErrGone)
	_, err = f.Open(b.adapter.Name())
	require.ErrorIs(t, err, verbs.ErrNoDevice)
	a.send(t, 1, 8, 0)
	require.NoError(t, a.queue.Arm())
	if len(pollAll(t, a.queue)) == 0 {
		woken, err := a.channel.Wait()
		require.NoError(t, err)
		require.True(t, woken)
		got := pollAll(t, a.queue)
		require.Len(t, got, 1)
		require.Equal(t, verbs.StatusRetriesExceeded, got[0].Status)
	}
}

// The limit on locked memory applies to the pages of all regions, as RLIMIT_MEMLOCK does.
func TestLockLimit(t *testing.T) {
	f := software.NewFabric(software.Config{LockLimit: 2<<20 + 3*4096})
	l := openConnection(t, f, verbs.RC, 4, timers{}) // registers 2 MiB
	domain, memory := l.ends[0].domain, l.ends[0].memory
	_, err := domain.Register(memory[:4*4096], verbs.LocalWrite)
	var limit *verbs.LockLimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, verbs.LockLimitError{Want: 2<<20 + 4*4096, Limit: 2<<20 + 3*4096}, *limit)
	require.ErrorContains(t, err, "2064 KiB")
	r, err := domain.Register(memory[:2*4096+1], verbs.LocalWrite)
	require.NoError(t, err)
	_, err = domain.Register(memory[:1], verbs.LocalWrite)
	require.ErrorAs(t, err, &limit)
	require.NoError(t, r.Close())
	require.EqualValues(t, 2<<20, f.Live()[software.PinnedBytes])
}

// Closing a region ends a stream of writes into it, and nothing changes its memory afterwards.
func TestRevoke(t *testing.T) {
	f := software.NewFabric(software.Config{MTU: 256})
	l := openConnection(t, f, verbs.RC, 4, timers{14, 7, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	own, err := verbs.Allocate(256 << 10)
	require.NoError(t, err)
	region, err := b.domain.Register(own, verbs.LocalWrite|verbs.RemoteWrite)
	require.NoError(t, err)
	for i := 0; i < len(a.memory); i += 8 {
		binary.LittleEndian.PutUint64(a.memory[i:], 0x0101010101010101)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var got [1]verbs.Completion
		for {
			_, err := a.pair.PostSend([]verbs.SendRequest{{
				Operation: verbs.Write, Elements: a.element(0, len(own)), Signaled: true,
				RemoteAddr: region.Addr(), RemoteKey: region.RemoteKey(),
			}})
			if err != nil {
				t.Error(err)
				return
			}
			n, err := a.queue.Poll(got[:])
			switch {
			case n != 1 || err != nil:
				t.Error(n, err)
				return
			case got[0].Status == verbs.StatusOK:
				continue
			case got[0].Status != verbs.StatusRemoteAccess:
				t.Error(got[0].Status)
			}
			return
		}
	})
	for landed := false; !landed; { // until the end of a write
		landed = own[len(own)-1] != 0
		runtime.Gosched()
	}
	require.NoError(t, region.Close())
	clear(own) // the adapter may not write to it any more
	wg.Wait()
	require.True(t, bytes.Equal(own, make([]byte, len(own))))
	require.NoError(t, verbs.Free(own))
}

// Operations on closed objects return net.ErrClosed.
func TestClosedThings(t *testing.T) {
	f := software.NewFabric(software.Config{})
	_, err := f.Add("x")
	require.NoError(t, err)
	_, err = f.Add("x")
	require.Error(t, err)
	d, err := f.Open("x")
	require.NoError(t, err)
	c, err := d.CreateChannel()
	require.NoError(t, err)
	q, err := d.CreateQueue(1, c)
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.NoError(t, q.Close(), "twice is once")
	_, err = q.Poll(make([]verbs.Completion, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	done := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Wait(); err != nil {
				done <- err
				return
			}
		}
	}()
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
	require.NoError(t, d.Close())
	_, err = d.AllocDomain()
	require.True(t, errors.Is(err, net.ErrClosed))
	require.Zero(t, f.Live())
}

// Neither completions nor requests remain after Reset.
func TestResetForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := software.NewFabric(software.Config{})
		l := openConnection(t, f, verbs.RC, 4, timers{14, 7, 12, 7})
		a, b := &l.ends[0], &l.ends[1]
		b.postReceive(t, 1, 0, 8)
		for i := range uint64(4) { // one is done, the others wait for a receive request
			a.send(t, i, 8, 0)
		}
		for _, s := range []*endpoint{a, b} {
			require.NoError(t, s.pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
			require.Empty(t, pollAll(t, s.queue))
			require.Empty(t, pollAll(t, s.recvs))
		}
		advance(time.Second)
		require.Empty(t, pollAll(t, a.queue))
		require.NoError(t, a.pair.Modify(verbs.Attributes{
			Mask: verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess, State: verbs.Init, Port: 1,
		}))
		for i := range uint64(4) { // the whole queue is free again
			a.postReceive(t, i, 0, 8)
		}
		_, err := a.pair.PostReceive([]verbs.ReceiveRequest{{}})
		require.ErrorIs(t, err, verbs.ErrQueueFull)
	})
}

// A message longer than the largest one fails before any packet is sent.
func TestLongest(t *testing.T) {
	l := openConnection(t, software.NewFabric(software.Config{}), verbs.RC, 4, timers{14, 7, 12, 7})
	a := &l.ends[0]
	e := a.element(0, 8)
	e[0].Length = 1 << 31
	_, err := a.pair.PostSend([]verbs.SendRequest{{ID: 5, Operation: verbs.Send, Elements: e}})
	require.NoError(t, err)
	got := pollAll(t, a.queue)
	require.Len(t, got, 1)
	require.Equal(t, verbs.StatusLocalLength, got[0].Status)
}

// An adapter enforces its limits on numbers of objects.
func TestFull(t *testing.T) {
	f := software.NewFabric(software.Config{Limits: verbs.Limits{Pairs: 3, Queues: 4}})
	l := openConnection(t, f, verbs.UC, 4, timers{}) // one pair and two queues per adapter
	a := &l.ends[0]
	c := verbs.PairConfig{Transport: verbs.UC, Send: a.queue, Receive: a.recvs, SendRequests: 1, ReceiveRequests: 1}
	for range 2 {
		p, err := a.domain.CreatePair(c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
	}
	_, err := a.domain.CreatePair(c)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "3 queue pairs")
	var queues []verbs.CompletionQueue
	for range 2 {
		q, err := a.device.CreateQueue(1, nil)
		require.NoError(t, err)
		queues = append(queues, q)
	}
	_, err = a.device.CreateQueue(1, nil)
	require.ErrorIs(t, err, verbs.ErrLimit)
	for _, q := range queues {
		require.NoError(t, q.Close())
	}
}
