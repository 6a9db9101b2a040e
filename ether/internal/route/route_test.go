package route

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// world simulates the routes between two ends in virtual time. Both ends answer at once.
type world struct {
	now    time.Duration
	rand   *rand.Rand
	table  *Table
	wires  []wire
	flying []flight
	moves  []time.Duration // when the route in use changed
}

type wire struct {
	dead  bool
	loss  float64 // of each direction
	delay time.Duration
}

type flight struct {
	at    time.Duration
	route int
	round uint32
}

func newWorld(seed uint64, wires ...wire) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1)), wires: wires, now: time.Hour}
	w.table = New(w.now, len(wires))
	return w
}

// run advances the time by d, a millisecond at a time.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += time.Millisecond {
		used := w.table.Used()
		if w.now >= w.table.Next() {
			w.probe()
		}
		kept := w.flying[:0]
		for _, f := range w.flying {
			switch {
			case f.at > w.now:
				kept = append(kept, f)
			case !w.wires[f.route].dead:
				w.table.Answered(w.now, f.route, f.round)
			}
		}
		w.flying = kept
		if w.table.Used() != used {
			w.moves = append(w.moves, w.now)
		}
	}
}

func (w *world) probe() {
	round := w.table.Begin(w.now)
	for i := range w.wires {
		k := &w.wires[i]
		there, back := w.rand.Float64() < k.loss, w.rand.Float64() < k.loss // of the probe, of its answer
		if lost := there || back; w.table.Probes(i) && !k.dead && !lost {
			w.flying = append(w.flying, flight{w.now + 2*k.delay, i, round})
		}
	}
}

// carrierLost is what both ends notice when a cable is pulled.
func (w *world) carrierLost(i int) {
	w.wires[i].dead = true
	used := w.table.Used()
	w.table.Fail(w.now, i, Carrier)
	if w.table.Used() != used {
		w.moves = append(w.moves, w.now)
	}
}

const bound = time.Second // for a route that carries nothing to be left

// Whatever happens to the routes: while one works, it is the one in use a second later.
func TestALivingRouteIsUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "routes")
		wires := make([]wire, n)
		for i := range wires {
			wires[i].delay = time.Duration(rapid.IntRange(0, 60).Draw(t, "delay")) * time.Millisecond
			wires[i].loss = rapid.SampledFrom([]float64{0, 0, 0.02, 0.1}).Draw(t, "loss")
			wires[i].dead = rapid.IntRange(0, 3).Draw(t, "dead") == 0
		}
		w := newWorld(rapid.Uint64().Draw(t, "seed"), wires...)
		w.run(3 * time.Second)
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			i := rapid.IntRange(0, n-1).Draw(t, "route")
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				w.carrierLost(i)
			case 1, 2:
				w.wires[i].dead = true
			case 3, 4:
				w.wires[i].dead = false
			case 5: // the other end has another interface
				if len(w.wires) < 6 {
					w.wires = append(w.wires, wire{})
					w.table.Extend(w.now, len(w.wires))
					n++
				}
			}
			w.run(time.Duration(rapid.IntRange(0, 500).Draw(t, "pause")) * time.Millisecond)
			if rapid.Bool().Draw(t, "settle") {
				// A route in use that works again while all others are dead needs no move: the check is of the route.
				w.run(bound + 4*60*time.Millisecond + Interval + time.Second)
				living := false
				for i := range w.wires {
					living = living || !w.wires[i].dead
				}
				if living && w.wires[w.table.Used()].dead {
					t.Fatalf("%v in use, wires %+v", w.table.Used(), w.wires)
				}
			}
		}
	})
}

// A cable that falls silent is left within a second, one that is pulled at once.
func TestBounds(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed, wire{delay: time.Millisecond}, wire{delay: 3 * time.Millisecond})
		w.run(2*time.Second + time.Duration(seed)*time.Millisecond)
		require.Zero(t, w.table.Used())
		begin := w.now
		w.wires[0].dead = true
		w.run(bound)
		require.Equal(t, 1, w.table.Used(), "seed %d: silent for %v", seed, w.now-begin)
		require.Equal(t, Silent, w.table.Cause(0))
		w.wires[0].dead = false
		w.run(dwell + bound)
		require.Zero(t, w.table.Used(), "it works again")
		w.carrierLost(0)
		require.Equal(t, 1, w.table.Used())
		require.Len(t, w.moves, 3)
	}
}

// Two routes that lose 30 % in each direction are not exchanged again and again.
func TestLossIsNoSilence(t *testing.T) {
	moves := 0
	for seed := range uint64(20) {
		w := newWorld(seed, wire{loss: 0.3, delay: 5 * time.Millisecond}, wire{loss: 0.3, delay: 5 * time.Millisecond})
		w.run(10 * time.Minute)
		moves += len(w.moves)
	}
	require.LessOrEqual(t, moves, 20, "in 200 minutes")
}

// A route that comes and goes is used ever later.
func TestNoFlapping(t *testing.T) {
	w := newWorld(1, wire{}, wire{})
	w.run(2 * time.Second)
	for range 100 {
		w.carrierLost(0)
		w.run(3 * time.Second)
		w.wires[0].dead = false
		w.run(3 * time.Second)
	}
	require.LessOrEqual(t, len(w.moves), 4, "in ten minutes")
}

// An end that was stopped, or a network without anything, is no reason for another route.
func TestSilenceOfAll(t *testing.T) {
	w := newWorld(1, wire{}, wire{})
	w.run(2 * time.Second)
	for range 20 {
		w.now += 10 * time.Second // stopped
		w.flying = nil
		w.run(100 * time.Millisecond)
		w.wires[0].dead, w.wires[1].dead = true, true
		w.run(5 * time.Second)
		w.wires[0].dead, w.wires[1].dead = false, false
		w.run(time.Second)
	}
	require.Empty(t, w.moves)
}

func TestAnswersThatWereNotAskedFor(t *testing.T) {
	w := newWorld(1, wire{}, wire{dead: true})
	w.run(2 * time.Second)
	for _, round := range []uint32{0, w.table.round + 1, 1<<31 + w.table.round, 1<<32 - 1} {
		w.table.Answered(w.now, 1, round)
		require.False(t, w.table.Known(1), fmt.Sprint(round))
	}
	w.wires[1].dead = false
	w.run(Interval)
	require.True(t, w.table.Known(1))
	round := w.table.Begin(w.now)
	w.table.Fail(w.now, 1, Withdrawn)
	w.table.Answered(w.now+time.Millisecond, 1, round)
	require.Equal(t, Withdrawn, w.table.Cause(1), "the probe was sent before")
}

// Rounds that follow each other at once, as when interfaces come and go, say nothing about the route in use.
func TestManyRoundsAtOnce(t *testing.T) {
	w := newWorld(1, wire{delay: 20 * time.Millisecond}, wire{})
	w.run(2 * time.Second)
	for range 2 * vainRounds {
		w.table.Answered(w.now, 1, w.table.Begin(w.now))
	}
	require.Zero(t, w.table.Used())
	w.run(time.Minute)
	require.Empty(t, w.moves)
}

// A long way is no silence, while a short one is there, too.
func TestALongWay(t *testing.T) {
	w := newWorld(1, wire{delay: 300 * time.Millisecond}, wire{delay: time.Millisecond})
	w.run(5 * time.Minute)
	require.LessOrEqual(t, len(w.moves), 2, "before its round trip was known")
	require.Zero(t, w.table.Used())
}

func TestDeadRoutesAreProbedSeldom(t *testing.T) {
	w := newWorld(1, wire{}, wire{dead: true})
	w.run(2 * time.Minute)
	probes := 0
	for range restEvery {
		w.table.Begin(w.now)
		if w.table.Probes(1) {
			probes++
		}
	}
	require.Equal(t, 1, probes)
}
