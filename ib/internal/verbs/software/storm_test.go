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

// TestStorm: lines of one fabric work at once while wires are pulled and packets lost;
// pairs that break are reset and joined again. Nothing stops for good, what arrives is
// whole, and when all is closed nothing is left, no timer and no goroutine either.
func TestStorm(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		f := software.NewFabric(software.Config{MTU: 512})
		var lines []*line
		for i := range 4 {
			tr := []verbs.Transport{verbs.RC, verbs.UC}[i%2]
			lines = append(lines, joinNamed(t, f, fmt.Sprint("storm", i, "."), tr, 16, timers{1, 2, 1, 2}))
		}
		stop := make(chan struct{})
		var weather sync.WaitGroup
		weather.Go(func() { storm(f, lines, stop) })
		var wg sync.WaitGroup
		delivered := make([]int, len(lines))
		for i, l := range lines {
			wg.Go(func() { delivered[i] = l.ride(t, uint64(i)) })
		}
		wg.Wait()
		close(stop)
		weather.Wait()
		for i, n := range delivered {
			require.GreaterOrEqual(t, n, enough, "line %d", i)
		}
	})
	await.Until(t, func() bool { return runtime.NumGoroutine() <= before }, "the end of all goroutines but %d", before)
}

// storm changes the weather until it is stopped, and leaves it good.
func storm(f *software.Fabric, lines []*line, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(1, 2))
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	defer func() {
		f.SetRule(nil)
		for _, l := range lines {
			_ = l.ends[1].adapter.SetPort(1, true)
		}
	}()
	for n := uint64(0); ; n++ {
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		if r.IntN(3) == 0 {
			f.SetRule(software.FaultRates{Seed: n, DropRate: 0.05, DelayRate: 0.1, MaxDelay: 300 * time.Microsecond, DuplicateRate: 0.05}.Rule())
		} else {
			f.SetRule(nil)
		}
		for _, l := range lines {
			_ = l.ends[1].adapter.SetPort(1, r.IntN(8) > 0)
		}
	}
}

// enough messages have seen all kinds of weather.
const enough = 2000

// ride sends messages both ways, and mends the line whenever it breaks; it tells how
// many were delivered.
func (l *line) ride(t *testing.T, seed uint64) (delivered int) {
	r := rand.New(rand.NewPCG(seed, 9))
	for round := 0; delivered < enough; round++ {
		broken := false
		for i := range l.ends {
			s, o := &l.ends[i], &l.ends[1-i]
			_, _ = o.pair.PostReceive([]verbs.ReceiveRequest{{ID: uint64(round), Elements: o.piece(4096*(round%16), 4096)}})
			n := 8 + r.IntN(4000)
			binary.LittleEndian.PutUint64(s.memory[1<<19:], uint64(n)*3)
			binary.LittleEndian.PutUint64(s.memory[1<<19+n-8:], uint64(n)*3)
			if _, err := s.pair.PostSend([]verbs.SendRequest{{Operation: verbs.Send, Elements: s.piece(1<<19, n), Signaled: true}}); err != nil {
				broken = true
				continue
			}
			var got [1]verbs.Completion
			for k := 0; k == 0; runtime.Gosched() { // each send ends
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
			l.mend(t)
		}
	}
	return delivered
}

// mend takes both pairs through Reset and joins them.
func (l *line) mend(t tester) {
	for i := range l.ends {
		require.NoError(t, l.ends[i].pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset}))
	}
	l.connect(t)
}

// TestWritesAscend: who reads memory that is being written sees no later byte before an
// earlier one, as behind PCI Express (on processors that keep the order of stores).
func TestWritesAscend(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the order of stores is amd64's")
	}
	l := join(t, software.NewFabric(software.Config{}), verbs.UC, 4, timers{})
	a, b := &l.ends[0], &l.ends[1]
	const words = 512 // one packet
	word := func(s *station, i int) *uint64 { return (*uint64)(unsafe.Pointer(&s.memory[i*8])) }
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
				Operation: verbs.Write, Elements: a.piece(0, words*8), Signaled: true,
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

// TestBusyPollers: pollers that keep every processor busy do not keep the adapter from
// what it does by time.
func TestBusyPollers(t *testing.T) {
	l := join(t, software.NewFabric(software.Config{}), verbs.RC, 4, timers{14, 7, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	a.send(t, 1, 8, 0) // nothing is posted to receive it: the adapter waits, and tries again
	b.expect(t, 1, 0, 8)
	var came atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var got [1]verbs.Completion
			for came.Load() == 0 { // and for ever, if the adapter is kept from it
				k, _ := a.queue.Poll(got[:])
				came.Add(int64(k))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, came.Load())
	require.Len(t, all(t, b.recvs), 1)
}
