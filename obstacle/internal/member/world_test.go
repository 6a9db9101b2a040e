package member

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
	queue    []Event // from the leader
	effects  []Effect
	box      problem.Box // of the values that are held
	relaxes  bool        // from the beginning of the relaxation until the values are kept
	halts    bool        // the relaxation stops at losses
	last     bool        // the run is not left to converge
	failing  bool        // jobs may fail
	fails    bool        // the run
	inTime   bool        // the problem has time steps
	step     int         // the newest that has ended, in the epoch
	steps    []int       // whose ends are held
	waits    bool        // the relaxation, until the end of a step can be held
	gives    bool        // steps are abandoned, as a newer epoch begins
	sent     []int       // steps whose ends the leader has
	prepared bool        // an epoch, that was not quit
	hungUp   bool

	// Of the leader:
	epoch   int // newest
	started bool
	results []int // epochs of the answers on this connection
}

// begun is a job that has not ended.
type begun struct {
	Do
	err  error // that ends it; nil if it ends by itself
	over bool  // it ends by itself
}

var own = problem.Box{Hi: [3]int{2, 1, 1}}

func newWorld(t *testing.T, seed uint64, inTime bool) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), transcript: transcript{Member: led()}, inTime: inTime}
	w.lasts, w.recovers = true, seed%2 == 0
	w.assign(&Assigned{})
	return w
}

// say queues a message of the leader.
func (w *world) say(m rendezvous.Message) { w.queue = append(w.queue, Event{Message: m}) }

// assign queues work for the newest epoch.
func (w *world) assign(a *Assigned) {
	a.Epoch, a.Box, a.InTime = w.epoch, own, w.inTime
	w.queue = append(w.queue, Event{Assigned: a})
}

// lose begins a new epoch.
func (w *world) lose(ranks ...int) {
	w.epoch++
	w.say(rendezvous.Epoch{Epoch: w.epoch, Lost: ranks})
}

// cut ends the connection to the leader.
func (w *world) cut() { w.queue = []Event{{Closed: true}} }

func (w *world) tell(text string, o Event) {
	if w.Outcome != InProgress {
		return
	}
	o.Held = w.box
	_, is := o.Message.(rendezvous.Epoch)
	o.Halts = is && w.halts && w.task != idle
	if o.Message != nil {
		text = effectText(o.Message)
	}
	w.perform(w.handle(w.now, text, o))
}

// perform lets the world react to effects, and checks that they make sense.
func (w *world) perform(effects []Effect) {
	for _, e := range effects {
		w.effects = append(w.effects, e)
		switch e := e.(type) {
		case Do:
			w.begin(e)
		case BeginSteps:
			require.Empty(w.t, w.find(ToHold, ToSend))
			w.step, w.steps, w.sent = w.accepted.After, []int{w.accepted.After}, nil
		case Hold:
			require.Empty(w.t, w.find(ToSend), "its memory may be used again")
			if w.gives {
				w.tell("the step was abandoned", Event{Ended: &Ended{ToHold, e.Number, ErrNextEpoch}})
				continue
			}
			require.True(w.t, w.waits)
			if w.waits = false; e.Drop {
				w.steps = w.steps[1:]
			}
			w.steps = append(w.steps, w.step)
			w.jobs = append(w.jobs, &begun{Do: Do{ToHold, e.Number, w.at}})
		case SendEnd:
			require.Empty(w.t, w.find(ToHold, ToSend))
			require.Contains(w.t, w.steps, e.Step)
			require.Equal(w.t, connected, w.contact)
			w.jobs = append(w.jobs, &begun{Do: Do{ToSend, e.Number, e.Step}})
		case Supersede:
			w.gives = w.relaxes
			w.interrupt(context.Canceled, ToRepair, ToConnect, ToPrepare, ToAwait)
		case Abort:
			w.interrupt(errors.New("closed"), ToConnect, ToPrepare, ToRelax)
		case Abandon:
			w.interrupt(ErrNextEpoch, ToRelax)
		case HangUp:
			w.hungUp = true
			w.interrupt(errors.New("closed"), ToOpen, ToRepair, ToConnect, ToPrepare, ToAnnounce, ToRelax, ToAnswer, ToSend)
		case Quit:
			require.True(w.t, w.prepared, "nothing to quit")
			require.Empty(w.t, w.find(ToPrepare, ToAnnounce, ToRelax, ToKeep, ToAnswer), "a job uses what was freed")
			w.prepared, w.relaxes = false, false
		case Surrender:
			require.False(w.t, w.prepared || w.box.Empty())
		}
	}
}

// find returns the jobs in progress of some kinds.
func (w *world) find(kinds ...Job) (out []*begun) {
	for _, b := range w.jobs {
		if slices.Contains(kinds, b.Job) {
			out = append(out, b)
		}
	}
	return out
}

// interrupt ends jobs, unless they have just ended by themselves.
func (w *world) interrupt(err error, kinds ...Job) {
	for _, b := range w.find(kinds...) {
		if b.over = w.rand.IntN(4) == 0; !b.over {
			b.err = err
		}
	}
}

func (w *world) begin(d Do) {
	b := &begun{Do: d}
	switch d.Job {
	case ToOpen, ToReport, ToResume, ToRepair, ToConnect:
		require.Empty(w.t, w.find(ToOpen, ToReport, ToResume, ToRepair, ToConnect), "one job of an entry at a time")
		require.True(w.t, d.Job != ToReport || len(w.find(ToSend)) == 0, "an end of the former epoch may follow")
		require.False(w.t, d.Job == ToReport && w.halts && w.relaxes, "the leader would learn of values that are not kept")
		require.False(w.t, d.Job == ToResume && w.relaxes)
	case ToPrepare:
		require.False(w.t, w.prepared || w.relaxes, "the epoch before was not quit")
		require.Empty(w.t, w.find(ToPrepare, ToAnnounce, ToRelax, ToKeep, ToAnswer))
		require.Equal(w.t, w.Member.Epoch, d.Epoch, "an epoch that is over was entered")
		w.prepared = true
	case ToAnnounce, ToAwait, ToKeep:
		require.True(w.t, w.prepared)
		require.False(w.t, d.Job == ToAnnounce && w.abandoned, "it has ended")
		require.Empty(w.t, w.find(ToPrepare, ToAnnounce, ToRelax, ToKeep))
	case ToRelax:
		require.True(w.t, w.prepared)
		require.False(w.t, w.abandoned, "it would not end")
		require.True(w.t, w.Started)
		w.relaxes, w.waits, w.gives = true, false, false
	case ToAnswer:
		require.Empty(w.t, w.find(ToAnswer))
		if w.inTime && w.Lost == nil {
			require.Contains(w.t, w.sent, w.step, "the leader needs the last end before the answer")
		}
	}
	if w.hungUp {
		b.err = errors.New("closed")
	}
	w.jobs = append(w.jobs, b)
}

// ends ends a job, and reports whether it can.
func (w *world) ends(b *begun) bool {
	err := b.err
	if b.Job == ToRelax && w.waits && w.gives && err == nil {
		err = ErrNextEpoch
	}
	switch {
	case b.Job == ToRelax && (len(w.find(ToHold)) > 0 || w.waits && !w.gives && !w.hungUp):
		return false // it is in the end of a step
	case b.Job == ToRelax && w.inTime && err == nil && w.step < 9 && !w.gives && !w.hungUp:
		w.step++
		w.waits = true
		w.tell(fmt.Sprintf("step %d ends", w.step), Event{Step: w.step})
		return true
	case b.Job == ToRelax && err == nil && !b.over && (w.last || w.rand.IntN(4) > 0):
		return false
	case err == nil && w.failing && !slices.Contains([]Job{ToRelax, ToAwait, ToKeep, ToHold}, b.Job) && w.rand.IntN(8) == 0:
		err = errors.New("failure")
	}
	w.jobs = slices.DeleteFunc(w.jobs, func(other *begun) bool { return other == b })
	switch b.Job {
	case ToSend:
		if err == nil {
			w.sent = append(w.sent, b.Epoch)
		} else if !w.hungUp {
			w.cut()
		}
	case ToReport:
		if err == nil && b.Epoch == w.epoch {
			w.assign(&Assigned{Repairs: w.box != own})
		}
	case ToRepair:
		if err == nil {
			w.box = own
		}
	case ToAnnounce:
		if err == nil && !w.started {
			w.started = true
			w.say(rendezvous.Start{})
		}
	case ToRelax:
		if errors.Is(err, ErrNextEpoch) {
			w.box, w.relaxes = own, false
		}
	case ToKeep:
		w.box, w.relaxes = own, false
	case ToAnswer:
		if err == nil {
			w.results = append(w.results, b.Epoch)
		} else if !w.hungUp {
			w.cut()
		}
	}
	o := Event{Ended: &Ended{b.Job, b.Number, err}}
	o.Loss = err != nil && w.recovers && w.rand.IntN(2) == 0
	w.tell(fmt.Sprintf("%v has ended, %v", b.Do, err), o)
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
			if o.Assigned != nil {
				text = fmt.Sprintf("assigned %+v", *o.Assigned)
			}
			w.tell(text, o)
			return true
		}
	}
	return w.search()
}

// search answers the questions of a search.
func (w *world) search() bool {
	switch w.contact {
	case proposing:
		w.tell("not decided", Event{Decided: &register.Term{}})
	case asking:
		f := &Found{Address: "b"}
		if w.rand.IntN(3) == 0 {
			f = &Found{Err: errors.New("no answer")}
		} else {
			w.results, w.sent = nil, nil
			w.say(rendezvous.Start{})
			w.say(rendezvous.Resend{From: 0})
			switch {
			case w.fails:
				w.say(rendezvous.Lost{Why: "why"})
			case w.epoch > w.Member.Epoch: // it was not sent
				w.say(rendezvous.Epoch{Epoch: w.epoch})
			case w.entry == unassigned || w.entry == leaving, w.inTime && (w.entry != entered || w.task < unstarted):
				w.lose()
			}
		}
		w.tell(fmt.Sprintf("asked: %q, %v", f.Address, f.Err), Event{Asked: f})
	case pausing:
		w.now, _ = w.Wake()
		w.tell("deadline", Event{})
	default:
		at, is := w.Wake()
		if is {
			w.now = max(w.now, at)
			w.tell("deadline", Event{})
		}
		return is
	}
	return true
}

// settle lets everything happen, until nothing does or the peer has ended.
func (w *world) settle() {
	for n := 0; w.Outcome == InProgress && (w.proceed() || !w.last && len(w.find(ToRelax)) > 0); n++ {
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
				w.queue = slices.DeleteFunc(w.queue, func(o Event) bool { return o.Message == rendezvous.Start{} })
				w.started = false
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
			for len(w.find(ToAnswer)) == 0 {
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
			w.queue[0].Assigned.Resumes = true
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
		"epochs, time steps": func(w *world) {
			w.halts = true
			for w.step < 5 {
				w.proceed()
			}
			w.lose(1)
		},
		"requests": func(w *world) {
			relaxing(w)
			w.tell("stop", Event{Request: ToStop})
			w.tell("leave", Event{Request: ToLeave})
			w.say(rendezvous.Stop{})
			w.settle()
			w.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, name == "epochs, time steps")
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
	var ends [Failed + 1]int
	for seed := range seeds {
		w := newWorld(t, seed, seed%3 == 0)
		w.failing, w.halts = w.rand.IntN(8) == 0, w.inTime || w.rand.IntN(2) == 0
		for range w.rand.IntN(40) {
			switch w.rand.IntN(24) {
			case 0, 1:
				if !w.fails {
					w.lose(w.rand.IntN(3))
				}
			case 2:
				if w.Member.Started { // a leader without keepers ends the run
					w.cut()
				}
			case 3:
				w.tell("stop", Event{Request: ToStop})
			case 4:
				w.tell("leave", Event{Request: ToLeave})
			case 6:
				w.say(rendezvous.Epoch{Epoch: w.rand.IntN(w.epoch + 1)}) // an old one
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
		if !faults && w.Outcome == InProgress && w.contact == connected && w.task != answering {
			require.Equal(t, relaxing, w.task, "seed %d\n%s", seed, w.String())
			require.Equal(t, w.epoch, w.at, "seed %d\n%s", seed, w.String())
		}
		w.last = false
		w.settle()
		if w.Outcome == InProgress {
			require.Equal(t, answering, w.task, "seed %d\n%s", seed, w.String())
			require.NotEmpty(t, w.results, "seed %d\n%s", seed, w.String())
			require.True(t, w.fails || slices.Contains(w.results, w.epoch), "seed %d\n%s", seed, w.String())
			w.say(rendezvous.Bye{})
			w.settle()
		}
		require.NotEqual(t, InProgress, w.Outcome, "seed %d\n%s", seed, w.String())
		require.True(t, faults || w.Outcome == Finished || w.contact == alone, "seed %d\n%s", seed, w.String())
		ends[w.Outcome]++
	}
	for o := Finished; o <= Failed; o++ {
		require.NotZero(t, ends[o], "no run has ended so: %d", o)
	}
}
