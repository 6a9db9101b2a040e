package p2psap

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

var (
	changeSeed  = flag.Uint64("change.seed", 1, "first seed of TestChanges")
	changeCount = flag.Uint64("change.count", 24, "number of seeds of TestChanges")
	changeGoal  = flag.Int("change.goal", 200, "changes of composition in each seed of TestChanges")
)

// modeAt returns the mode of an end's k-th Adapt, mostly that of the other end.
func modeAt(seed uint64, k, end int) microproto.Mode {
	r := rand.New(rand.NewPCG(seed, uint64(k)))
	m := microproto.Mode(1 + r.IntN(2))
	if r.IntN(40) == 0 && end == 1 {
		m = 3 - m
	}
	return m
}

// attack lets both ends send, receive and change until the session has changed a number of times.
func (d *twoNodes) attack(seed uint64, goal int) {
	start := microproto.ModeSynchronous
	if seed%3 == 0 {
		start = microproto.ModeAsynchronous
	}
	d.start(start, nil)
	eager := 1 + d.rand.IntN(4)
	reached := func() bool {
		for _, e := range d.ends {
			if s := e.n.session(e.id); s == nil || int(s.info.Changes) < goal {
				return false
			}
		}
		return true
	}
	for _, e := range d.ends {
		var act func()
		idle, last := int64(0), uint32(0)
		act = func() {
			s := e.n.session(e.id)
			if d.faultless || d.fault != nil || s == nil {
				return
			}
			if idle++; s.info.Changes != last {
				idle, last = 0, s.info.Changes
			}
			e.act(seed, eager)
			// While nothing changes, the connection being down, there is less to try.
			d.clock.After(time.Duration(d.rand.Int64N(int64(2*d.latency)*(1+idle/4))), act)
		}
		act()
	}
	// No change may take long, whatever happens: connections are made again within seconds.
	for done := 0; done < goal && d.fault == nil; done += 10 {
		d.until(5*time.Minute, "changes come to no end", func() bool {
			a, b := d.ends[0].n.session(d.ends[0].id), d.ends[1].n.session(d.ends[1].id)
			return a == nil || b == nil || int(min(a.info.Changes, b.info.Changes)) >= min(done+10, goal)
		})
	}
	if !reached() {
		d.fail(errors.New("the session has ended"))
	}
}

// act makes one random call of a user.
func (e *socketUser) act(seed uint64, eager int) {
	d := e.d
	switch x := d.rand.IntN(10); {
	case x < 4:
		for range 1 + d.rand.IntN(3) {
			e.send()
		}
	case x < 6:
		for e.receive(1 + d.rand.IntN(testSlots)) {
			continue
		}
	case x < 6+eager:
		if d.rand.IntN(3) > 0 {
			e.adapt(func(k int) microproto.Mode { return modeAt(seed, k, e.i) })
			break
		}
		s := e.n.session(e.id)
		to := s.conditions
		to.Distance, to.Lossy = Distance(d.rand.IntN(3)), d.rand.IntN(4) == 0
		if err := e.n.proposeConditions(d.clock.Now(), s, to); err != nil && !errors.Is(err, ErrBusy) {
			d.fail(fmt.Errorf("%s: the monitor cannot change: %w", e.n.Name(), err))
		}
	}
	switch d.rand.IntN(8) {
	case 0, 1, 2:
		e.offer()
	case 3:
		e.withdraw()
	}
	e.checkAdapt()
	e.checkBounds()
	e.failRails()
	e.settle()
}

// checkBounds fails the run when an end holds more than its bounds allow.
func (e *socketUser) checkBounds() {
	s := e.n.session(e.id)
	if s == nil {
		return
	}
	s.unacked.drop(uint64(s.acceptedNow()))
	if used := s.handover.Stored - s.handover.Consumed; s.unacked.cost() > 2*s.theirs.ReceiveBytes ||
		used > uint64(s.options.ReceiveBytes) ||
		len(s.handover.Unread) > s.options.ReceiveBytes/messageCost || len(s.pathStates) > control.MaxProtocols {
		e.d.fail(fmt.Errorf("%s holds too much: %d bytes kept, %d used of %d; spent %d, granted %d, %s", e.n.Name(),
			s.unacked.cost(), used, s.options.ReceiveBytes, s.queued, s.granted, e.d))
	}
}

// endFaults ends the faults: then every proposal is answered, every message arrives, and the ends agree.
func (d *twoNodes) endFaults(seed uint64) {
	if d.fault != nil {
		return
	}
	d.faultless = true
	f := d.link
	f.SetFaults(quietFaults(d.latency))
	for _, e := range d.ends {
		e.rise()
	}
	d.until(3*time.Minute, "the ends do not come to rest", func() bool {
		rest := true
		for i, e := range d.ends {
			other := d.ends[1-i]
			e.checkAdapt()
			if e.adapting == 0 && len(e.outcomes) < len(other.outcomes)+int(min(other.adapting, 1)) {
				e.adapt(func(k int) microproto.Mode { return modeAt(seed, k, e.i) })
				e.settle()
			}
			for tag := 1; tag <= testSlots; tag++ {
				for e.receive(tag) {
					continue
				}
				rest = rest && e.got[tag] == other.sent[tag]
			}
			e.spoilAccepted()
			e.settle()
			s := e.n.session(e.id)
			if s == nil || d.fault != nil {
				return true
			}
			rest = rest && (d.cables == nil || s.channel.Path != nil && !s.channel.Over ||
				d.cables[0].only && s.channel.mode() == microproto.ModeAsynchronous) && e.adapting == 0 &&
				s.renegotiation.Mine.Cause == 0 && s.renegotiation.Theirs.Cause == 0 && len(e.flight) == 0
		}
		return rest
	})
	if d.fault == nil {
		d.fail(d.compare())
	}
}

func (d *twoNodes) compare() error {
	for _, e := range d.ends {
		if n := e.n.Counters(); n.FramesForged+n.FramesUnprotected > 0 {
			return fmt.Errorf("%s does not open what the other end has sealed: %+v", e.n.Name(), n)
		}
	}
	a, b := d.ends[0], d.ends[1]
	d.moves = a.n.session(a.id).info.Moves
	x, y := a.n.session(a.id), b.n.session(b.id)
	if x.channel.number != y.channel.number || x.info.Changes != y.info.Changes || x.conditions != y.conditions ||
		x.info.Moves != y.info.Moves || x.channel.Round != y.channel.Round {
		return fmt.Errorf("the ends stand in different epochs: %s", d)
	}
	if fmt.Sprint(x.composition.Protocols) != fmt.Sprint(y.composition.Protocols) {
		return fmt.Errorf("the ends have different compositions: %v and %v", x.composition.Protocols, y.composition.Protocols)
	}
	if len(a.outcomes) != len(b.outcomes) {
		return fmt.Errorf("%d and %d wishes are over", len(a.outcomes), len(b.outcomes))
	}
	for k := range a.outcomes {
		var refused *RefusedError
		bad := modeAt(d.seed, k, 0) != modeAt(d.seed, k, 1)
		if (a.outcomes[k] != nil) != bad || (b.outcomes[k] != nil) != bad || bad && !errors.As(a.outcomes[k], &refused) {
			return fmt.Errorf("wish %d ended with %v and %v", k, a.outcomes[k], b.outcomes[k])
		}
	}
	d.changes = int(x.info.Changes)
	return nil
}

// TestChanges changes the composition of a session again and again, in -change.count
// seeds from -change.seed on, -change.goal times each.
func TestChanges(t *testing.T) {
	if testing.Short() {
		*changeCount, *changeGoal = min(*changeCount, 8), min(*changeGoal, 60)
	}
	var next, changes, wires, moves atomic.Uint64
	var wait sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < *changeCount; i = next.Add(1) - 1 {
				seed := *changeSeed + i
				d := newDuel(seed)
				if seed%3 == 2 {
					d.cables = &[2]cable{{only: seed%4 == 1}, {only: seed%4 == 1}}
				}
				d.attack(seed, *changeGoal)
				d.endFaults(seed)
				changes.Add(uint64(d.changes))
				wires.Add(uint64(d.wires))
				moves.Add(uint64(d.moves))
				if d.fault == nil {
					continue
				}
				mu.Lock()
				if failed++; failed <= 3 {
					t.Errorf("seed %d: %v\nreplay: go test ./p2psap -run 'TestChanges$' -count=1 "+
						"-change.seed=%d -change.count=1 -change.goal=%d", seed, d.fault, seed, *changeGoal)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	t.Logf("%d seeds, %d changes, %d of them of the rail, over %d control connections; %d failed", *changeCount,
		changes.Load(), moves.Load(), wires.Load(), failed)
	if failed == 0 && *changeCount > 1 {
		require.GreaterOrEqual(t, changes.Load(), *changeCount*uint64(*changeGoal))
		require.Greater(t, wires.Load(), 2**changeCount, "connections break")
		require.Greater(t, moves.Load(), *changeCount, "rails fall and rise")
	}
}
