package p2psap

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// quietTwoNodes returns two nodes without faults.
func quietTwoNodes(seed uint64, latency time.Duration) *twoNodes {
	d := newDuel(4 * seed) // no seed of a reliable link
	d.latency, d.breaks, d.late, d.refuse = latency, 0, 0, 0
	d.cramped, d.sealed, d.trains = false, false, false
	d.link.SetFaults(quietFaults(latency))
	return d
}

func (d *twoNodes) pass(t time.Duration) {
	until := d.clock.Now().Add(t)
	d.clock.At(until, func() {})
	d.until(t+time.Second, "time", func() bool { return d.clock.Now() >= until })
}

func always(m microproto.Mode) func(int) microproto.Mode {
	return func(int) microproto.Mode { return m }
}

// A change takes at most two round trips and 5 ms from the moment at which both ends asked for it, whatever
// is under way, as long as the control channel loses nothing.
func TestPause(t *testing.T) {
	for _, latency := range []time.Duration{20 * time.Microsecond, 500 * time.Microsecond, 10 * ms, 100 * ms} {
		for _, loss := range []float64{0, 0.05} {
			var longest time.Duration
			for seed := range uint64(20) {
				d := quietTwoNodes(seed, latency)
				d.start(microproto.ModeSynchronous, nil)
				d.link.SetFaults(mptest.Faults{Delay: latency, Jitter: latency / 8, Loss: loss})
				bound := 4*(latency+latency/8) + 5*ms
				if loss > 0 {
					bound += 6*IntraRTOFloor + 12*latency // what is lost has to come again, perhaps twice
				}
				traffic := func() {
					for _, e := range d.ends {
						for range 4 { // segments: no more than a first congestion window
							e.sendUnder(1)
						}
						e.settle()
					}
				}
				traffic()
				d.pass(latency * 10)
				for k := range 8 {
					for _, e := range d.ends {
						for tag := 1; tag <= testSlots; tag++ {
							for e.receive(tag) {
								continue
							}
						}
					}
					traffic()
					d.pass(time.Duration(k) * latency / 4)
					begin := d.clock.Now()
					if k%4 == 1 { // one end's monitor
						s := d.ends[k/4].n.session(d.ends[k/4].id)
						to := s.conditions
						to.Distance = Distance(1 + k/4)
						require.NoError(t, d.ends[k/4].n.proposeConditions(begin, s, to))
						d.ends[k/4].settle()
						number := s.info.Changes + 1
						d.until(10*time.Second, "the monitor's change", func() bool {
							a, b := d.ends[0].n.session(d.ends[0].id), d.ends[1].n.session(d.ends[1].id)
							return min(a.info.Changes, b.info.Changes) == number
						})
					} else {
						for _, e := range d.ends {
							e.adapt(always(microproto.Mode(1 + (k/2)%2)))
							e.settle()
						}
						d.until(10*time.Second, "a change", func() bool {
							d.ends[0].checkAdapt()
							d.ends[1].checkAdapt()
							return d.ends[0].adapting == 0 && d.ends[1].adapting == 0
						})
					}
					require.NoError(t, d.fault)
					took := d.clock.Now().Sub(begin)
					longest = max(longest, took)
					require.LessOrEqual(t, took, bound, "latency %v, loss %v, seed %d, change %d", latency, loss, seed, k)
					info, err := d.ends[0].n.Info(d.ends[0].id)
					require.NoError(t, err)
					require.LessOrEqual(t, info.LastPause, took)
				}
			}
			t.Logf("one way %v, loss %v: a change took %v at most (two round trips and 5 ms: %v)", latency, loss, longest,
				4*latency+5*ms)
		}
	}
}

// refusals are the reasons for which an end cannot change as the other end asks.
func refusals() map[string]func(i int, c *NodeConfig) {
	inner := func(c Conditions) (Composition, error) {
		if c.Mode == microproto.ModeAsynchronous {
			return Composition{}, errors.New("no asynchronous columns here")
		}
		return TablePolicy{}.Compose(c)
	}
	return map[string]func(i int, c *NodeConfig){
		"no asynchronous columns here": func(i int, c *NodeConfig) {
			if i == 1 {
				c.Policy = policyFunc(inner)
			}
		},
		"micro-protocols that this program does not have: Novelty": func(i int, c *NodeConfig) {
			if i == 0 {
				c.Policy = policyFunc(func(c Conditions) (Composition, error) {
					out, err := TablePolicy{}.Compose(c)
					if c.Mode == microproto.ModeAsynchronous {
						out.Protocols = append(out.Protocols, "Novelty")
					}
					return out, err
				})
			}
		},
		"header layout or versions": func(i int, c *NodeConfig) {
			catalog := microproto.NewCatalog()
			for _, name := range ctp.Catalog().Names() {
				_ = catalog.Add(name, func(o microproto.Options) (microproto.MicroProtocol, error) {
					p, err := ctp.Catalog().Build([]string{name}, o)
					if err != nil {
						return nil, err
					}
					if e, ok := p[0].(*ctp.Asynchronous); ok && i == 1 {
						return newer{e}, nil
					}
					return p[0], nil
				})
			}
			c.Catalog = catalog
		},
	}
}

type policyFunc func(c Conditions) (Composition, error)

func (f policyFunc) Compose(c Conditions) (Composition, error) { return f(c) }

// newer is Asynchronous in another version.
type newer struct{ *ctp.Asynchronous }

func (n newer) Attach(b *microproto.Binder) error {
	b.Version(77)
	return n.Asynchronous.Attach(b)
}

// If one end cannot change, both keep their composition and both report why.
func TestRefusedChange(t *testing.T) {
	for why, change := range refusals() {
		t.Run(why, func(t *testing.T) {
			d := quietTwoNodes(1, ms)
			d.start(microproto.ModeSynchronous, change)
			for range 3 {
				for _, e := range d.ends {
					e.send()
					e.adapt(always(microproto.ModeAsynchronous))
					e.settle()
				}
				d.until(time.Second, "refused", func() bool {
					d.ends[0].checkAdapt()
					d.ends[1].checkAdapt()
					return d.ends[0].adapting == 0 && d.ends[1].adapting == 0
				})
				require.NoError(t, d.fault)
			}
			for _, e := range d.ends {
				for _, err := range e.outcomes {
					var refused *RefusedError
					require.ErrorAs(t, err, &refused)
					require.Contains(t, refused.Reason, why)
				}
				info, err := e.n.Info(e.id)
				require.NoError(t, err)
				require.Zero(t, info.Changes)
				require.Equal(t, microproto.ModeSynchronous, info.Conditions.Mode)
				e.outcomes = nil
			}
			d.endFaults(0)
			require.NoError(t, d.fault)
			require.Positive(t, d.ends[0].got[1]+d.ends[0].got[2], "messages go on in the old composition")
		})
	}
}

// One end stops at any moment of a change: the other reports that the peer is lost, and nothing blocks.
func TestPeerLostDuringChange(t *testing.T) {
	for step := range 40 {
		d := quietTwoNodes(2, ms)
		d.start(microproto.ModeSynchronous, func(_ int, c *NodeConfig) { c.PeerTimeout, c.Heartbeat = 2*time.Second, 200*ms })
		d.deadly = true
		for _, e := range d.ends {
			e.send()
			e.adapt(always(microproto.ModeAsynchronous))
			e.settle()
		}
		for range step {
			d.clock.Step()
		}
		d.dead = d.ends[1]
		d.snap()
		a := d.ends[0]
		d.until(time.Minute, "the peer is not lost", func() bool {
			state, _ := a.n.State(a.id)
			return state == SessionEnded
		})
		require.NoError(t, d.fault, "step %d", step)
		_, err := a.n.State(a.id)
		var lost *PeerLostError
		require.ErrorAs(t, err, &lost)
		_, err = a.n.Adapt(d.clock.Now(), a.id, microproto.ModeSynchronous)
		require.ErrorAs(t, err, &lost)
		a.n.Close(d.clock.Now(), a.id)
		require.Nil(t, a.n.session(a.id))
		require.Empty(t, a.n.Frames(0))
	}
}

// Either end closes at any moment of a change: both sessions end, messages accepted before can be received,
// and the session can be opened again.
func TestCloseDuringChange(t *testing.T) {
	for step := range 60 {
		d := quietTwoNodes(3, ms)
		d.closing = true
		d.start(microproto.ModeSynchronous, nil)
		for _, e := range d.ends {
			for range 4 {
				e.send()
			}
			e.adapt(always(microproto.ModeAsynchronous))
			e.settle()
		}
		for range step / 2 {
			d.clock.Step()
		}
		a, b := d.ends[step%2], d.ends[1-step%2]
		a.n.Close(d.clock.Now(), a.id)
		a.settle()
		d.until(time.Minute, "not closed", func() bool {
			x, _ := a.n.State(a.id)
			y, _ := b.n.State(b.id)
			return x == SessionEnded && (y == SessionRemoteClosed || y == SessionEnded)
		})
		state, _ := b.n.State(b.id)
		for tag := 1; tag <= testSlots && state == SessionRemoteClosed; tag++ {
			for slot := (Slot{Tag: Tag(tag), Data: make([]byte, slotLength(tag))}); ; {
				r, err := b.n.Receive(d.clock.Now(), b.id, &slot)
				if err != nil {
					require.ErrorIs(t, err, ErrPeerClosed)
					break
				}
				if r.Fresh {
					b.got[tag]++
				}
			}
			require.Equal(t, a.sent[tag], b.got[tag], "step %d: what was sent before the close", step)
		}
		for _, e := range d.ends {
			e.n.Close(d.clock.Now(), e.id)
			e.n.Close(d.clock.Now(), e.id)
			e.settle()
			require.Nil(t, e.n.session(e.id))
		}
		require.NoError(t, d.fault, "step %d", step)
		d.open(microproto.ModeAsynchronous)
		require.NoError(t, d.fault, "step %d", step)
	}
}

// A frame of an old epoch changes nothing: neither of the one before nor of one with the same number in the
// header.
func TestFramesOfOldEpochs(t *testing.T) {
	d := quietTwoNodes(5, 100*time.Microsecond)
	d.start(microproto.ModeSynchronous, nil)
	a, b := d.ends[0], d.ends[1]
	var old []byte
	d.tap = func(from int, f []byte) bool {
		if from == 0 && old == nil {
			old = bytes.Clone(f)
		}
		return true
	}
	a.send()
	a.settle()
	require.NotNil(t, old)
	inject := func() NodeCounters {
		b.n.Input(d.clock.Now(), 0, microproto.NewBuffer(bytes.Clone(old), nil).Frame(1, 0, len(old)))
		b.settle()
		return b.n.Counters()
	}
	for k := 1; k <= 600; k++ {
		for _, e := range d.ends {
			e.adapt(always(microproto.ModeSynchronous))
			e.settle()
		}
		d.until(time.Second, "a change", func() bool {
			a.checkAdapt()
			b.checkAdapt()
			return a.adapting == 0 && b.adapting == 0
		})
		require.NoError(t, d.fault)
		dropped := b.n.Counters().FramesOtherEpoch
		info, err := b.n.Info(b.id)
		require.NoError(t, err)
		arrivals, was := b.n.Arrivals(b.id), info.Dropped
		now := inject()
		info, err = b.n.Info(b.id)
		require.NoError(t, err)
		if k%256 == 0 {
			require.Equal(t, was+1, info.Dropped, "change %d: the ports tell it", k)
		} else {
			require.Equal(t, dropped+1, now.FramesOtherEpoch, "change %d", k)
		}
		require.Equal(t, arrivals, b.n.Arrivals(b.id))
	}
	require.EqualValues(t, 600%256, func() uint8 { i, _ := b.n.Info(b.id); return i.Epoch }())
	a.outcomes, b.outcomes = nil, nil
	d.endFaults(0)
	require.NoError(t, d.fault)
}

// Messages not received when the mode changed are received first, in order, then the values that came after
// them. Slots start empty when messages came in between.
func TestUnreadAcrossModes(t *testing.T) {
	d := quietTwoNodes(6, 100*time.Microsecond)
	d.start(microproto.ModeSynchronous, nil)
	a, b := d.ends[0], d.ends[1]
	change := func(m microproto.Mode) {
		for _, e := range d.ends {
			e.adapt(always(m))
			e.settle()
		}
		d.until(time.Second, "a change", func() bool {
			a.checkAdapt()
			b.checkAdapt()
			return a.adapting == 0 && b.adapting == 0
		})
		require.NoError(t, d.fault)
	}
	send := func(label uint64, text string) {
		_, err := a.n.Send(d.clock.Now(), a.id, 1, Label(label), []byte(text))
		require.NoError(t, err)
		a.settle()
		d.pass(ms)
	}
	slot := Slot{Tag: 1, Data: make([]byte, 64), Labels: make([]microproto.SegmentLabel, 0, 4)}
	take := func() (string, Arrival, error) {
		r, err := b.n.Receive(d.clock.Now(), b.id, &slot)
		return string(bytes.TrimRight(slot.Data[:r.Length], "\x00.")), r, err
	}
	pad := func(s string) string { return fmt.Sprintf("%-64s", s)[:64] }
	send(1, "first")
	send(2, "")
	send(3, "third")
	change(microproto.ModeAsynchronous)
	require.EqualValues(t, 3, b.n.Unread(b.id))
	send(4, pad("value"))
	for i, want := range []string{"first", "", "third"} {
		text, r, err := take()
		require.NoError(t, err)
		require.Equal(t, want, text)
		require.Equal(t, Arrival{Label: uint64(i + 1), Newest: uint64(i + 1), Length: len(want), Fresh: true,
			Complete: true}, r)
		require.Len(t, slot.Labels, 1)
	}
	text, r, err := take()
	require.NoError(t, err)
	require.True(t, r.Fresh && r.Complete)
	require.EqualValues(t, 4, r.Label)
	require.Equal(t, pad("value"), text)
	send(5, pad("nobody reads it"))
	change(microproto.ModeSynchronous)
	_, _, err = take()
	require.ErrorIs(t, err, ErrNothing)
	send(6, "message")
	text, _, err = take()
	require.NoError(t, err)
	require.Equal(t, "message", text)
	change(microproto.ModeAsynchronous)
	_, r, err = take()
	require.NoError(t, err)
	require.False(t, r.Fresh || r.Complete, "the slot starts empty")
	_, err = a.n.Send(d.clock.Now(), a.id, 1, 3, []byte(pad("older")))
	require.ErrorContains(t, err, "labels must not decrease")
	send(7, pad("newest"))
	_, r, err = take()
	require.NoError(t, err)
	require.EqualValues(t, 7, r.Label)
	require.True(t, r.Complete)
}

// A session whose composite fails at one end ends at both.
func TestFailureIsReported(t *testing.T) {
	d := quietTwoNodes(8, ms)
	d.closing = true
	d.start(microproto.ModeSynchronous, nil)
	a, b := d.ends[0], d.ends[1]
	_, err := b.n.Adapt(d.clock.Now(), b.id, microproto.ModeAsynchronous)
	require.NoError(t, err)
	b.settle()
	d.pass(10 * ms)
	s := a.n.session(a.id)
	why := errors.New("out of paper")
	a.n.collect(d.clock.Now(), s, s.channel, why, -1)
	a.settle()
	d.pass(10 * ms)
	state, err := a.n.State(a.id)
	require.Equal(t, SessionEnded, state)
	require.ErrorIs(t, err, why)
	state, err = b.n.State(b.id)
	require.Equal(t, SessionEnded, state)
	require.ErrorContains(t, err, "out of paper")
	require.NoError(t, d.fault)
}

// What a composition measured of the path is there again after a composition without measurement: a first
// segment that is lost is sent again soon.
func TestPathStateIsKept(t *testing.T) {
	d := quietTwoNodes(9, ms)
	d.start(microproto.ModeSynchronous, nil)
	a, b := d.ends[0], d.ends[1]
	for range 10 {
		a.send()
		a.settle()
		d.pass(5 * ms)
	}
	rtt := func() time.Duration {
		return valueOf(a.n.session(a.id).channel.cells.rtt)
	}
	before := rtt()
	require.GreaterOrEqual(t, before, 2*ms)
	for _, m := range []microproto.Mode{microproto.ModeAsynchronous, microproto.ModeSynchronous} {
		for _, e := range d.ends {
			e.adapt(always(m))
			e.settle()
		}
		d.until(time.Second, "a change", func() bool {
			a.checkAdapt()
			b.checkAdapt()
			return a.adapting == 0 && b.adapting == 0
		})
	}
	require.Equal(t, before, rtt())
	lost := false
	d.tap = func(from int, _ []byte) bool {
		first := from == 0 && !lost
		lost = lost || first
		return !first
	}
	arrivals, begin := b.n.Arrivals(b.id), d.clock.Now()
	a.sendUnder(1)
	a.settle()
	d.until(time.Second, "the message", func() bool { return b.n.Arrivals(b.id) > arrivals })
	require.NoError(t, d.fault)
	require.Less(t, d.clock.Now().Sub(begin), 10*ms)
}
