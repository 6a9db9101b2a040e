package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// world is a member with a leader and jobs that need neither processes nor a clock. Jobs end, and messages arrive, in an
// order that a seed decides. The messages of one connection stay in their order.
type world struct {
	t *testing.T
	transcript
	rand     *rand.Rand
	now      time.Duration
	jobs     []*begun
	queue    []event // from the leader
	effects  []effect
	box      problem.Box // of the values that are held
	relaxes  bool        // from the beginning of the relaxation until the values are kept
	halts    bool        // the relaxation stops at losses
	last     bool        // the run is not left to converge
	failing  bool        // jobs may fail
	fails    bool        // the run
	prepared bool        // an epoch, that was not quit
	hungUp   bool

	// Of the leader:
	epoch   int // newest
	started bool
	results []int // epochs of the answers on this connection
}

// begun is a job that has not ended.
type begun struct {
	do
	err error // with which it ends; nil: by itself
}

var own = problem.Box{Hi: [3]int{2, 1, 1}}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), transcript: transcript{member: led()}}
	w.assign(&assigned{})
	return w
}

// say queues a message of the leader.
func (w *world) say(m rendezvous.Message) { w.queue = append(w.queue, event{message: m}) }

// assign queues work for the newest epoch.
func (w *world) assign(a *assigned) {
	a.epoch, a.box = w.epoch, own
	w.queue = append(w.queue, event{assigned: a})
}

// lose begins a new epoch.
func (w *world) lose(ranks ...int) {
	w.epoch++
	w.say(rendezvous.Epoch{Epoch: w.epoch, Lost: ranks})
}

// cut ends the connection to the leader.
func (w *world) cut() { w.queue = []event{{closed: true}} }

func (w *world) step(text string, o event) {
	if w.outcome != inProgress {
		return
	}
	o.held = w.box
	_, is := o.message.(rendezvous.Epoch)
	o.halts = is && w.halts && w.task != idle
	if o.message != nil {
		text = effectText(o.message)
	}
	w.perform(w.handle(w.now, text, o))
}

// perform lets the world react to effects, and checks that they make sense.
func (w *world) perform(effects []effect) {
	for _, e := range effects {
		w.effects = append(w.effects, e)
		switch e := e.(type) {
		case do:
			w.begin(e)
		case supersede:
			w.interrupt(context.Canceled, toRepair, toConnect, toPrepare, toAwait, toDrain)
			w.interrupt(errNextEpoch, toAnnounce)
		case abort:
			w.interrupt(errors.New("closed"), toConnect, toPrepare, toRelax)
		case abandon:
			w.interrupt(errNextEpoch, toRelax)
		case hangUp:
			w.hungUp = true
			w.interrupt(errors.New("closed"), toOpen, toRepair, toConnect, toPrepare, toAnnounce, toRelax, toDrain, toAnswer)
		case quit:
			require.True(w.t, w.prepared, "nothing to quit")
			require.Empty(w.t, w.find(toPrepare, toAnnounce, toRelax, toKeep, toAnswer), "a job uses what was freed")
			w.prepared, w.relaxes = false, false
		case surrender:
			require.False(w.t, w.prepared || w.box.Empty())
		}
	}
}

// find returns the jobs in progress of some kinds.
func (w *world) find(kinds ...job) (out []*begun) {
	for _, b := range w.jobs {
		if slices.Contains(kinds, b.job) {
			out = append(out, b)
		}
	}
	return out
}

func (w *world) interrupt(err error, kinds ...job) {
	for _, b := range w.find(kinds...) {
		b.err = err
	}
}

func (w *world) begin(d do) {
	b := &begun{do: d}
	switch d.job {
	case toOpen, toResume, toRepair, toConnect:
		require.Empty(w.t, w.find(toOpen, toResume, toRepair, toConnect), "one job of an entry at a time")
		require.False(w.t, d.job == toOpen && w.halts && w.relaxes, "the leader would learn of values that are not kept")
		require.False(w.t, d.job == toResume && w.relaxes)
	case toPrepare:
		require.False(w.t, w.prepared || w.relaxes, "the epoch before was not quit")
		require.Empty(w.t, w.find(toPrepare, toAnnounce, toRelax, toKeep, toAnswer))
		require.Equal(w.t, w.member.epoch, d.epoch, "an epoch that is over was entered")
		w.prepared = true
	case toAnnounce, toAwait, toKeep:
		require.True(w.t, w.prepared)
		require.Empty(w.t, w.find(toPrepare, toAnnounce, toRelax, toKeep))
	case toRelax:
		require.True(w.t, w.prepared)
		require.False(w.t, w.abandoned, "it would not end")
		require.True(w.t, w.started || d.epoch > 0)
		w.relaxes = true
	case toAnswer:
		require.Empty(w.t, w.find(toAnswer))
	}
	if w.hungUp {
		b.err = errors.New("closed")
	}
	w.jobs = append(w.jobs, b)
}

// ends ends a job, and reports whether it can.
func (w *world) ends(b *begun) bool {
	err := b.err
	switch {
	case b.job == toRelax && err == nil && (w.last || w.rand.IntN(4) > 0):
		return false
	case b.job == toDrain && w.contact != connected && err == nil:
		return false
	case err == nil && w.failing && !slices.Contains([]job{toRelax, toAwait, toKeep, toDrain}, b.job) && w.rand.IntN(8) == 0:
		err = errors.New("failure")
	}
	w.jobs = slices.DeleteFunc(w.jobs, func(other *begun) bool { return other == b })
	switch b.job {
	case toOpen:
		if err == nil && b.epoch == w.epoch {
			w.assign(&assigned{repairs: w.box != own})
		}
	case toRepair:
		if err == nil {
			w.box = own
		}
	case toAnnounce:
		if err == nil && !w.started {
			w.started = true
			w.say(rendezvous.Start{})
		}
	case toRelax:
		if errors.Is(err, errNextEpoch) {
			w.box, w.relaxes = own, false
		}
	case toKeep:
		w.box, w.relaxes = own, false
	case toAnswer:
		if err == nil {
			w.results = append(w.results, b.epoch)
		} else if !w.hungUp {
			w.cut()
		}
	}
	w.step(fmt.Sprintf("%v has ended, %v", b.do, err), event{ended: &ended{b.job, b.number, err}})
	return true
}

// proceed lets a job end, or delivers a message, and reports whether there was one.
func (w *world) proceed() bool {
	w.now += time.Millisecond
	choices := w.rand.Perm(len(w.jobs) + 1)
	for _, i := range choices {
		if i < len(w.jobs) {
			if w.ends(w.jobs[i]) {
				return true
			}
		} else if len(w.queue) > 0 && w.contact == connected {
			o := w.queue[0]
			w.queue = w.queue[1:]
			text := "closed"
			if o.assigned != nil {
				text = fmt.Sprintf("assigned %+v", *o.assigned)
			}
			w.step(text, o)
			return true
		}
	}
	return w.search()
}

// search answers the questions of a search.
func (w *world) search() bool {
	switch w.contact {
	case proposing:
		w.step("not decided", event{decided: &register.Term{}})
	case asking:
		f := &found{address: "b"}
		if w.rand.IntN(3) == 0 {
			f = &found{err: errors.New("no answer")}
		} else {
			w.results = nil
			switch {
			case w.fails:
				w.say(rendezvous.Lost{Why: "why"})
			case w.epoch > w.member.epoch: // it was not sent
				w.queue = []event{{message: rendezvous.Epoch{Epoch: w.epoch}}}
			case w.entry == unassigned || w.entry == leaving:
				w.lose()
			}
		}
		w.step(fmt.Sprintf("asked: %q, %v", f.address, f.err), event{asked: f})
	case pausing:
		w.now, _ = w.wake()
		w.step("deadline", event{})
	default:
		return false
	}
	return true
}

// settle lets everything happen, until nothing does or the peer has ended.
func (w *world) settle() {
	for n := 0; w.outcome == inProgress && (w.proceed() || !w.last && len(w.find(toRelax)) > 0); n++ {
		require.Less(w.t, n, 2000, "no end\n%s", w.String())
	}
}

// Each transcript holds what a peer does about commands and epochs, in order.
func TestEpochs(t *testing.T) {
	relaxing := func(w *world) { w.settle() }
	for name, play := range map[string]func(w *world){
		"epochs, a run": func(w *world) {
			w.settle()
			w.last = false
			w.settle()
			w.say(rendezvous.Bye{})
		},
		"epochs, a loss in lockstep": func(w *world) {
			relaxing(w)
			w.halts = true
			w.lose(1)
		},
		"epochs, a loss while others relax": func(w *world) {
			relaxing(w)
			w.lose(1)
		},
		"epochs, a loss before the start": func(w *world) {
			for w.task != unstarted {
				w.proceed()
				w.queue = slices.DeleteFunc(w.queue, func(o event) bool { return o.message == rendezvous.Start{} })
			}
			w.halts = true
			w.lose(1)
		},
		"epochs, two losses": func(w *world) {
			relaxing(w)
			w.lose(1)
			for w.entry != connecting {
				w.proceed()
			}
			w.lose(2)
		},
		"epochs, a loss while an answer is sent": func(w *world) {
			relaxing(w)
			w.last = false
			for len(w.find(toAnswer)) == 0 {
				w.proceed()
			}
			w.last = true
			w.lose(1)
		},
		"epochs, a kept iterate": func(w *world) {
			relaxing(w)
			w.lose(1)
			for w.entry != unassigned {
				w.proceed()
			}
			w.queue[0].assigned.resumes = true
		},
		"epochs, the run fails": func(w *world) {
			relaxing(w)
			w.say(rendezvous.Lost{Rank: 1, Why: "peer 1 ended"})
		},
		"epochs, the run fails between two epochs": func(w *world) {
			relaxing(w)
			w.halts = true
			w.lose(1)
			for w.entry != unassigned {
				w.proceed()
			}
			w.queue = nil
			w.say(rendezvous.Lost{Rank: 1, Why: "peer 1 ended"})
			w.settle()
			w.say(rendezvous.Bye{})
		},
		"epochs, the leader is lost while an answer is sent": func(w *world) {
			relaxing(w)
			w.last = false
			w.settle()
			w.cut()
		},
		"epochs, no ports": func(w *world) {
			relaxing(w)
			w.lose(1)
			for w.entry != opening {
				w.proceed()
			}
			w.jobs[len(w.jobs)-1].err = errors.New("no port")
		},
		"requests": func(w *world) {
			relaxing(w)
			w.step("stop", event{request: toStop})
			w.step("leave", event{request: toLeave})
			w.say(rendezvous.Stop{})
			w.settle()
			w.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.last = true
			play(w)
			w.settle()
			w.requireGolden(t, name)
		})
	}
}

// Whatever happens in whatever order, a peer ends: with the run, or for a reason. When nothing more happens to it, it
// relaxes in the newest epoch, and delivers an answer.
func TestRandomEpochs(t *testing.T) {
	seeds := uint64(20000)
	if testing.Short() {
		seeds = 2000
	}
	var ends [failed + 1]int
	for seed := range seeds {
		w := newWorld(t, seed)
		w.failing, w.halts = w.rand.IntN(8) == 0, w.rand.IntN(2) == 0
		for range w.rand.IntN(40) {
			switch w.rand.IntN(24) {
			case 0, 1:
				if !w.fails {
					w.lose(w.rand.IntN(3))
				}
			case 2:
				if w.member.started { // a leader without keepers ends the run
					w.cut()
				}
			case 3:
				w.step("stop", event{request: toStop})
			case 4:
				w.step("leave", event{request: toLeave})
			case 5:
				if w.fails = w.fails || w.rand.IntN(6) == 0; w.fails {
					w.say(rendezvous.Lost{Why: "why", CutOff: true})
				}
			default:
				w.proceed()
			}
		}
		faults := w.failing || w.fails
		w.failing, w.last = false, true
		w.settle()
		if !faults && w.outcome == inProgress && w.contact == connected && w.task != answering {
			require.Equal(t, relaxing, w.task, "seed %d\n%s", seed, w.String())
			require.Equal(t, w.epoch, w.at, "seed %d\n%s", seed, w.String())
		}
		w.last = false
		w.settle()
		if w.outcome == inProgress {
			require.Equal(t, answering, w.task, "seed %d\n%s", seed, w.String())
			require.NotEmpty(t, w.results, "seed %d\n%s", seed, w.String())
			require.True(t, w.fails || slices.Contains(w.results, w.epoch), "seed %d\n%s", seed, w.String())
			w.say(rendezvous.Bye{})
			w.settle()
		}
		require.NotEqual(t, inProgress, w.outcome, "seed %d\n%s", seed, w.String())
		require.True(t, faults || w.outcome == finished || w.contact == alone, "seed %d\n%s", seed, w.String())
		ends[w.outcome]++
	}
	for o := finished; o <= failed; o++ {
		require.NotZero(t, ends[o], "no run has ended so: %d", o)
	}
}
