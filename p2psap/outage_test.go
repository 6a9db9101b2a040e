package p2psap

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// beDeaf has the control connection that stands carry nothing for a time, as after an outage, when the
// kernel waits before it sends again.
func (d *twoNodes) beDeaf(t time.Duration) {
	d.deaf = d.wire
	d.clock.After(t, func() {
		waiting := d.waiting
		d.deaf, d.waiting = 0, nil
		for _, arrive := range waiting {
			arrive()
		}
	})
}

// outage has the network carry nothing for a time. The control connection stays deaf for as long again.
func (d *twoNodes) outage(t time.Duration) {
	d.dark = true
	d.beDeaf(2 * t)
	for end := range d.ends {
		d.link.Partition(end, true)
	}
	d.clock.After(t, func() {
		d.dark = false
		for end := range d.ends {
			d.link.Partition(end, false)
		}
	})
}

// gaps lets both ends exchange messages, in lock-step or values every millisecond, and returns the longest time in
// which an end received nothing after begin.
func (d *twoNodes) gaps(t time.Duration) (longest time.Duration) { return d.gapsOf(1, t) }

// gapsOf is gaps with messages of a tag.
func (d *twoNodes) gapsOf(tag int, t time.Duration) (longest time.Duration) {
	begin := d.clock.Now()
	over := begin.Add(t)
	var last [2]microproto.Instant
	for i, e := range d.ends {
		last[i] = begin
		var act func()
		ahead := false // the other end has not answered the last message
		act = func() {
			if d.fault != nil || d.clock.Now() >= over {
				return
			}
			was, arrivals := e.got[tag], e.age[tag]
			for e.receive(tag) {
				if e.got[tag] == was && e.age[tag] == arrivals {
					break
				}
			}
			if e.got[tag] != was || e.age[tag] != arrivals {
				longest = max(longest, d.clock.Now().Sub(last[i]))
				last[i], ahead = d.clock.Now(), false
			}
			if !ahead || e.n.Mode(e.id) == microproto.ModeAsynchronous {
				ahead = true
				e.sendUnder(tag)
			}
			d.clock.After(ms/2, act)
		}
		act()
	}
	d.clock.At(over, func() {})
	d.until(t+time.Second, "time", func() bool { return d.clock.Now() >= over })
	for i := range last {
		longest = max(longest, over.Sub(last[i]))
	}
	return longest
}

func longHeartbeat(_ int, c *NodeConfig) { c.PeerTimeout, c.Heartbeat = time.Minute, time.Second }

// A change that a monitor proposes while the control connection is deaf stops no messages: they go on in the old
// composition. The ends soon have another connection, and the next proposal is carried out.
func TestDeafControlStopsNoData(t *testing.T) {
	begins := []int{0, 3, 5, 7} // half milliseconds
	if testing.Short() {
		begins = []int{3, 7}
	}
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, side := range []int{0, 1} {
			for i, begin := range begins {
				if testing.Short() && i != (int(mode)+side)%2 {
					continue
				}
				t.Run(fmt.Sprint(mode, " ", side, " ", begin), func(t *testing.T) {
					d := quietTwoNodes(1, ms)
					d.start(mode, longHeartbeat)
					d.gaps(100 * ms)
					e := d.ends[side]
					propose := func() {
						s := e.n.session(e.id)
						to := s.conditions
						to.Distance = Far
						require.NoError(t, e.n.proposeConditions(d.clock.Now(), s, to))
						e.settle()
					}
					// The connection falls deaf before the proposal, or at a later moment of the change.
					d.clock.After(10*ms, propose)
					d.clock.After(9*ms+time.Duration(begin)*ms/2, func() { d.beDeaf(8 * time.Second) })
					longest := d.gaps(9 * time.Second)
					require.NoError(t, d.fault)
					bound := 8 * ms
					if frozen := begin >= 6; frozen { // one end had begun the new epoch: the next connection goes on
						bound = (deafBound + 2) * time.Second // a heartbeat more, and the grace of the lower name
					}
					require.LessOrEqual(t, longest, bound)
					require.Greater(t, d.wires, 1, "another connection")
					if e.n.session(e.id).info.Changes == 0 {
						propose()
					}
					require.LessOrEqual(t, d.gaps(time.Second), 8*ms)
					for _, e := range d.ends {
						require.EqualValues(t, 1, e.n.session(e.id).info.Changes)
					}
				})
			}
		}
	}
}

// deafBound is the number of heartbeats after which a silent control connection is replaced.
const deafBound = 3

// After an outage messages go on within two seconds, in the same composition, also where the network is back long before
// the next retransmission is due.
func TestOutage(t *testing.T) {
	outages := []time.Duration{7, 12, 13, 14, 15, 16, 17, 18, 20, 27, 30}
	if testing.Short() {
		outages = []time.Duration{14}
	}
	for _, cluster := range []string{"", "other"} {
		for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			if testing.Short() && (mode == microproto.ModeSynchronous) != (cluster == "other") {
				continue
			}
			for seed, outage := range outages {
				outage *= time.Second
				t.Run(fmt.Sprint(mode, " ", cluster, " ", outage), func(t *testing.T) {
					d := quietTwoNodes(uint64(seed), ms)
					d.start(mode, func(i int, c *NodeConfig) {
						longHeartbeat(i, c)
						c.Monitor.Declared = true
						c.Cluster = []string{"one", "one" + cluster}[i]
					})
					d.gaps(time.Second)
					d.outage(outage)
					require.LessOrEqual(t, d.gaps(outage+4*time.Second), outage+2*time.Second)
					require.LessOrEqual(t, d.gaps(outage+2*time.Second), 8*ms)
					require.NoError(t, d.fault)
					for _, e := range d.ends {
						require.Zero(t, e.n.session(e.id).info.Changes)
					}
				})
			}
		}
	}
}

// An outage is not taken for loss: the composition stays.
func TestOutageIsNoLoss(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for seconds := 4; seconds <= 9; seconds += step {
		for _, latency := range []time.Duration{ms / 5, ms} {
			t.Run(fmt.Sprint(seconds, " s ", latency), func(t *testing.T) {
				d := quietTwoNodes(uint64(seconds), latency)
				d.start(microproto.ModeSynchronous, func(i int, c *NodeConfig) {
					longHeartbeat(i, c)
					c.Monitor.Declared = true
				})
				d.gaps(2 * time.Second)
				d.outage(time.Duration(seconds) * time.Second)
				d.gaps(time.Duration(seconds) * time.Second)
				for range 20 {
					d.gaps(100 * ms)
					info, err := d.ends[0].n.Info(d.ends[0].id)
					require.NoError(t, err)
					require.Zero(t, info.Changes)
					require.Less(t, info.Path.Loss, 0.01)
					require.Greater(t, info.Retransmitted, uint64(10))
				}
				require.NoError(t, d.fault)
			})
		}
	}
}

// try dials as a kernel does, which repeats a SYN after one second and after three; the caller gives
// up after five.
func (e *socketUser) try(waited time.Duration) {
	d := e.d
	if !d.dark {
		e.dial()
		return
	}
	next := []time.Duration{time.Second, 3 * time.Second, 5 * time.Second}
	for _, at := range next {
		if at > waited {
			d.clock.After(at-waited, func() { e.try(at) })
			return
		}
	}
	e.n.DialFailed(d.clock.Now(), string(rune('b'-e.i)))
	e.settle()
}

// While nothing of a peer arrives, its sessions say so, before the peer counts as lost.
func TestOutageIsTold(t *testing.T) {
	d := quietTwoNodes(1, ms)
	d.start(microproto.ModeSynchronous, longHeartbeat)
	require.Empty(t, d.info(0).PathDown)
	d.outage(5 * time.Second)
	begin := d.clock.Now()
	d.until(5*time.Second, "the outage is told", func() bool { return d.info(0).PathDown != "" })
	require.LessOrEqual(t, d.clock.Now().Sub(begin), 3*time.Second)
	require.Contains(t, d.info(0).PathDown, "nothing arrives from")
	d.until(20*time.Second, "its end is told", func() bool { return d.info(0).PathDown == "" })
}
