package software_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/stretchr/testify/require"
)

// Several connections of one fabric work while ports go down and packets get lost. Failed pairs are
// reset and reconnected. No connection stalls, messages arrive intact, and after the end nothing is
// open, no timer and no goroutine.
func TestStorm(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		f := software.NewFabric(software.Config{MTU: 512})
		var connections []*connection
		for i := range 4 {
			tr := []verbs.Transport{verbs.RC, verbs.UC}[i%2]
			connections = append(connections, openNamed(t, f, fmt.Sprint("storm", i, "."), tr, 16, timers{1, 2, 1, 2}))
		}
		stop := make(chan struct{})
		var faults sync.WaitGroup
		faults.Go(func() { injectFaults(f, connections, stop) })
		var wg sync.WaitGroup
		delivered := make([]int, len(connections))
		for i, l := range connections {
			wg.Go(func() { delivered[i] = l.exchange(t, uint64(i)) })
		}
		wg.Wait()
		close(stop)
		faults.Wait()
		for i, n := range delivered {
			require.GreaterOrEqual(t, n, enough, "connection %d", i)
		}
	})
	await.Until(t, func() bool { return runtime.NumGoroutine() <= before }, "the end of all goroutines but %d", before)
}

// injectFaults changes the faults until it is stopped, and leaves none.
func injectFaults(f *software.Fabric, connections []*connection, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(1, 2))
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	defer func() {
		f.SetRule(nil)
		for _, l := range connections {
			l.ends[1].adapter.SetPort(true)
		}
	}()
	for n := uint64(0); ; n++ {
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		if r.IntN(3) == 0 {
			f.SetRule(faultRates{
				Seed: n, DropRate: 0.05, DelayRate: 0.1, MaxDelay: 300 * time.Microsecond, DuplicateRate: 0.05,
			}.rule())
		} else {
			f.SetRule(nil)
		}
		for _, l := range connections {
			l.ends[1].adapter.SetPort(r.IntN(8) > 0)
		}
	}
}

// enough is the number of messages that meets all kinds of faults.
const enough = 2000

// exchange sends messages both ways, and reconnects when a pair fails. It returns the number of
// messages delivered.
func (l *connection) exchange(t *testing.T, seed uint64) (delivered int) {
	r := rand.New(rand.NewPCG(seed, 9))
	for round := 0; delivered < enough; round++ {
		broken := false
		for i := range l.ends {
			s, o := &l.ends[i], &l.ends[1-i]
			_, _ = o.pair.PostReceive([]verbs.ReceiveRequest{{ID: uint64(round), Elements: o.element(4096*(round%16), 4096)}})
			n := 8 + r.IntN(4000)
			binary.LittleEndian.PutUint64(s.memory[1<<19:], uint64(n)*3)
			binary.LittleEndian.PutUint64(s.memory[1<<19+n-8:], uint64(n)*3)
			w := verbs.SendRequest{Operation: verbs.Send, Elements: s.element(1<<19, n), Signaled: true}
			if _, err := s.pair.PostSend([]verbs.SendRequest{w}); err != nil {
				broken = true
				continue
			}
			var got [1]verbs.Completion
			for k := 0; k == 0; runtime.Gosched() { // every send completes
				k, _ = s.queue.Poll(got[:])
			}
			broken = broken || got[0].Status != verbs.StatusOK
			for k, _ := o.recvs.Poll(got[:]); k == 1; k, _ = o.recvs.Poll(got[:]) {
				if got[0].Status != verbs.StatusOK {
					broken = true
					continue
				}
				delivered++
				at, n := 4096*(int(got[0].ID)%16), int(got[0].Bytes)
				if x := binary.LittleEndian.Uint64(o.memory[at+n-8:]); l.transport == verbs.RC && x != uint64(n)*3 {
					t.Errorf("a message of %d bytes ends with %d", n, x)
				}
			}
		}
		if broken {
			l.reconnect(t)
		}
	}
	return delivered
}

// reconnect resets and connects both pairs. Their packets get new numbers: a packet of the old connection that was
// delayed must not count as one of the new.
func (l *connection) reconnect(t tester) {
	l.psn = (l.psn + 1<<16) & (1<<24 - 1)
	for i := range l.ends {
		require.NoError(t, l.ends[i].pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
	}
	l.connect(t)
}

// A reader of memory that is being written sees earlier bytes before later ones, as behind PCI
// Express (on processors that keep the order of stores).
func TestWritesAscend(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 guarantees the order of stores")
	}
	l := openConnection(t, software.NewFabric(software.Config{}), verbs.UC, 4, timers{})
	a, b := &l.ends[0], &l.ends[1]
	const words = 512 // one packet
	word := func(s *endpoint, i int) *uint64 { return (*uint64)(unsafe.Pointer(&s.memory[i*8])) }
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop.Store(true)
		var got [1]verbs.Completion
		for version := range uint64(5000) {
			for i := range words {
				*word(a, i) = version
			}
			if _, err := a.pair.PostSend([]verbs.SendRequest{{
				Operation: verbs.Write, Elements: a.element(0, words*8), Signaled: true,
				RemoteAddr: b.region.Addr(), RemoteKey: b.region.RemoteKey(),
			}}); err != nil {
				t.Error(err)
				return
			}
			if n, err := a.queue.Poll(got[:]); n != 1 || err != nil {
				t.Error(n, err)
				return
			}
		}
	})
	for !stop.Load() {
		last := uint64(0)
		for i := words - 1; i >= 0; i-- {
			v := atomic.LoadUint64(word(b, i))
			if v < last {
				t.Errorf("word %d has version %d, the one behind it %d", i, v, last)
				wg.Wait()
				return
			}
			last = v
		}
	}
	wg.Wait()
}

// The adapter's timers fire while pollers keep every processor busy.
func TestBusyPollers(t *testing.T) {
	l := openConnection(t, software.NewFabric(software.Config{}), verbs.RC, 4, timers{14, 7, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	a.send(t, 1, 8, 0) // no receive is posted: the adapter retries after a while
	b.postReceive(t, 1, 0, 8)
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var got [1]verbs.Completion
			for arrived.Load() == 0 { // for ever if the timer does not fire
				k, _ := a.queue.Poll(got[:])
				arrived.Add(int64(k))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, arrived.Load())
	require.Len(t, pollAll(t, b.recvs), 1)
}
