package p2psap

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

const ms = time.Millisecond

func TestClassify(t *testing.T) {
	var w MonitorConfig
	require.NoError(t, w.withDefaults())
	near := Conditions{Mode: microproto.ModeSynchronous, Locality: SameCluster, Network: Ethernet}
	far, lossy := near, near
	far.Distance, lossy.Lossy = Far, true
	other := near
	other.Locality = OtherCluster
	for _, x := range []struct {
		what     string
		from     Conditions
		path     PathMetrics
		distance Distance
		lossy    bool
	}{
		{"nothing is known", near, PathMetrics{}, DistanceUnknown, false},
		{"near", near, PathMetrics{RTT: ms}, DistanceUnknown, false},
		{"between the limits, from near", near, PathMetrics{RTT: 19 * ms}, DistanceUnknown, false},
		{"far", near, PathMetrics{RTT: 21 * ms}, Far, false},
		{"between the limits, from far", far, PathMetrics{RTT: 3 * ms}, Far, false},
		{"near again", far, PathMetrics{RTT: ms / 2}, Near, false},
		{"another cluster, as told", other, PathMetrics{RTT: 3 * ms}, DistanceUnknown, false},
		{"another cluster, and near", other, PathMetrics{RTT: ms / 2}, Near, false},
		{"a little loss", near, PathMetrics{Loss: 0.04}, DistanceUnknown, false},
		{"much loss", near, PathMetrics{Loss: 0.06}, DistanceUnknown, true},
		{"less of it", lossy, PathMetrics{Loss: 0.01}, DistanceUnknown, true},
		{"none any more", lossy, PathMetrics{Loss: 0.004}, DistanceUnknown, false},
	} {
		t.Run(x.what, func(t *testing.T) {
			to := w.Classify(x.from, x.path)
			require.Equal(t, x.distance, to.Distance)
			require.Equal(t, x.lossy, to.Lossy)
			require.Equal(t, x.from.Mode, to.Mode)
			require.Equal(t, to, w.Classify(to, x.path), "a second look changes nothing")
		})
	}
	_, err := NewNode(NodeConfig{Name: "a", Catalog: standIns(), Policy: TablePolicy{},
		Rails: []Rail{{Link: worldLink{}}}, Monitor: MonitorConfig{FarAbove: 1, NearBelow: 2}})
	require.ErrorContains(t, err, "contradict each other")
}

// A path that alternates between two measurements changes a session's conditions only if they lie on
// different sides of both limits.
func TestClassifyHasHysteresis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := MonitorConfig{}
		require.NoError(t, w.withDefaults())
		draw := func(name string) PathMetrics {
			return PathMetrics{
				RTT:  time.Duration(rapid.Int64Range(1, int64(50*ms)).Draw(t, name)),
				Loss: rapid.Float64Range(0, 0.1).Draw(t, name+" loss"),
			}
		}
		a, b := draw("a"), draw("b")
		c := Conditions{Mode: microproto.ModeSynchronous, Locality: SameCluster, Network: Ethernet}
		c = w.Classify(w.Classify(c, a), b)
		swings := w.Classify(c, a) != c
		straddles := max(a.RTT, b.RTT) > w.FarAbove && min(a.RTT, b.RTT) < w.NearBelow ||
			max(a.Loss, b.Loss) > w.LossyAbove && min(a.Loss, b.Loss) < w.CleanBelow
		if swings && !straddles {
			t.Fatalf("%v and %v change %v", a, b, c)
		}
	})
}

// However the distance alternates, there is at most one change in a dwell time. Changes that users ask for
// are neither delayed nor counted.
func TestDwell(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		d := quietTwoNodes(seed, 100*time.Microsecond)
		const dwell = 2500 * ms
		d.start(microproto.ModeSynchronous, func(_ int, c *NodeConfig) {
			c.Monitor = MonitorConfig{Declared: true,
				Dwell: dwell, LossyAbove: 1}
		})
		var changes []microproto.Instant // by a monitor
		wishes, last := 0, len(d.ends[0].n.session(d.ends[0].id).composition.Protocols)
		begin := d.clock.Now()
		for step := 0; d.clock.Now().Sub(begin) < 30*time.Second && d.fault == nil; step++ {
			if step%200 == 0 {
				d.link.SetFaults(mptest.Faults{Delay: []time.Duration{50 * time.Microsecond, 30 * ms}[step/200%2]})
			}
			for i, e := range d.ends {
				e.send()
				for tag := 1; tag <= testSlots; tag++ {
					for e.receive(tag) {
						continue
					}
				}
				if step%50 == 25+i {
					asked := d.clock.Now()
					e.adapt(func(int) microproto.Mode { return microproto.ModeSynchronous })
					e.settle()
					if i == 1 {
						d.until(time.Second, "a wish", func() bool { e.checkAdapt(); return e.adapting == 0 })
						require.Less(t, d.clock.Now().Sub(asked), dwell/5, "the monitor delays the scheme")
						wishes++
					}
				}
				e.checkAdapt()
				e.settle()
			}
			if s := d.ends[0].n.session(d.ends[0].id); s != nil && len(s.composition.Protocols) != last {
				last = len(s.composition.Protocols)
				changes = append(changes, d.clock.Now())
			}
			until := d.clock.Now().Add(5 * ms)
			d.clock.At(until, func() {})
			d.until(time.Second, "time passes", func() bool { return d.clock.Now() >= until })
		}
		require.NoError(t, d.fault)
		require.Greater(t, len(changes), 3, "seed %d: the monitor follows the path", seed)
		require.Greater(t, wishes, 5)
		for i := 1; i < len(changes); i++ {
			require.GreaterOrEqual(t, changes[i].Sub(changes[i-1])+10*ms, dwell, "seed %d: two changes within a dwell time",
				seed)
		}
	}
}

// Hosts with one label are near whatever is measured, but a path between them may be congested: the session changes to
// the columns between clusters, and back. On one host nothing changes.
func TestLossBetweenLabelledHosts(t *testing.T) {
	for name, host := range map[string]string{"two hosts": "", "one host": "here"} {
		d := quietTwoNodes(5, 15*time.Millisecond)
		d.mtu = 1400
		d.options = &OpenOptions{Name: "s", Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, 4000}}}
		d.start(microproto.ModeSynchronous, func(_ int, c *NodeConfig) {
			c.Heartbeat, c.PeerTimeout = 500*time.Millisecond, time.Minute
			c.Cluster, c.Host = "label", cmp.Or(host, c.Host)
			c.Monitor.Dwell, c.Monitor.FarAbove = 500*time.Millisecond, 20*time.Millisecond
		})
		a, b, slot := d.ends[0], d.ends[1], Slot{Tag: 1, Data: make([]byte, 4000)}
		lossy, frames := false, 0
		d.tap = func(int, []byte) bool {
			frames++
			return !lossy || frames%7 > 0
		}
		play := func(span time.Duration) Conditions {
			for end := d.clock.Now().Add(span); d.clock.Now() < end; {
				a.post(pattern(4000, 1))
				for err := error(nil); err == nil; {
					_, err = b.n.Receive(d.clock.Now(), b.id, &slot)
				}
				b.settle()
				d.pass(10 * time.Millisecond)
			}
			require.NoError(t, d.fault)
			return a.n.session(a.id).conditions
		}
		before := play(3 * time.Second)
		require.False(t, before.Lossy)
		require.True(t, before.Locality.Intra())
		lossy = true
		during := play(10 * time.Second)
		require.Equal(t, host == "", during.Lossy, name)
		require.Equal(t, before.Distance, during.Distance)
		lossy = false
		require.Equal(t, before, play(30*time.Second), name)
	}
}

// An asynchronous session floods a path, which loses most of its frames, and nothing comes the other way. Early heartbeats show it,
// and congestion control begins in half a second. That its first packets are lost in the full queue costs no second, since
// the round trip is known.
func TestFloodIsNoticedSoon(t *testing.T) {
	const length = 8192
	d := quietTwoNodes(7, ms)
	d.mtu = 1400
	d.options = &OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, length}}}
	d.start(microproto.ModeAsynchronous, func(i int, c *NodeConfig) {
		longHeartbeat(i, c)
		c.Cluster = "label"
	})
	frames := 0
	d.tap = func(int, []byte) bool { frames++; return frames%5 == 0 }
	a, b, slot := d.ends[0], d.ends[1], Slot{Tag: 1, Data: make([]byte, length)}
	require.True(t, a.n.session(a.id).conditions.Locality.Intra())
	a.n.peer("b").metrics.RTT = 2 * ms // another session has measured it
	begin := d.clock.Now()
	for !a.n.session(a.id).conditions.Lossy {
		require.Less(t, d.clock.Now().Sub(begin), 500*ms)
		require.True(t, a.post(pattern(length, 1)))
		d.pass(ms)
		_, _ = b.n.Receive(d.clock.Now(), b.id, &slot)
		b.settle()
	}
	require.NoError(t, d.fault)
	require.Zero(t, a.n.peer("b").frameLimit)
	begin = d.clock.Now()
	d.tap = func(int, []byte) bool { return d.clock.Now().Sub(begin) > 30*ms }
	for fresh := false; !fresh; {
		require.Less(t, d.clock.Now().Sub(begin), 300*ms)
		require.True(t, a.post(pattern(length, 2)))
		d.pass(ms)
		arrival, err := b.n.Receive(d.clock.Now(), b.id, &slot)
		fresh = err == nil && arrival.Fresh && slot.Data[length-1] == pattern(length, 2)[length-1]
		b.settle()
	}
}

// Heartbeats are early only between hosts: on one host no loss changes a session.
func TestNoEarlyHeartbeatsOnOneHost(t *testing.T) {
	for host, early := range map[string]bool{"": true, "here": false} {
		d := quietTwoNodes(7, ms)
		d.mtu = 1400
		d.options = &OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, 8192}}}
		d.start(microproto.ModeAsynchronous, func(i int, c *NodeConfig) {
			longHeartbeat(i, c)
			c.Cluster, c.Host = "label", cmp.Or(host, c.Host)
		})
		a, b := d.ends[0], d.ends[1]
		for range 300 {
			require.True(t, a.post(pattern(8192, 1)))
			d.pass(ms)
		}
		require.Equal(t, early, b.n.peer("a").frames.reportAt != 0)
	}
}

// The path loses frames only while the session sends without congestion control. After each such loss the session keeps
// congestion control twice as long. After a long time without loss it starts with the shortest time again.
func TestRelapses(t *testing.T) {
	const dwell = 5 * time.Second
	var m monitorState
	now := microproto.Instant(time.Second)
	for i := range 12 {
		want := dwell << min(i, maxRelapses)
		require.Equal(t, want, m.pause(now, true, dwell), i)
		require.Equal(t, dwell, m.pause(now.Add(time.Second), true, dwell), "a change of something else")
		now = now.Add(want)
		require.Equal(t, dwell, m.pause(now, false, dwell))
		now = now.Add(dwell + 2*time.Second)
	}
	now = now.Add(2 * dwell << maxRelapses)
	require.Equal(t, dwell, m.pause(now, true, dwell))
}

// The loss is that of two heartbeats in succession. An outage, queues that grow once, few frames and a peer that
// reports nonsense give none.
func TestMeasureLoss(t *testing.T) {
	for _, c := range []struct {
		name          string
		sent, arrived []uint64 // from one heartbeat to the next
		want          float64
	}{
		{"none", []uint64{1000, 1000, 1000}, []uint64{1000, 1000, 1000}, 0},
		{"lasting", []uint64{1000, 1000, 1000, 1000, 1000}, []uint64{800, 800, 800, 800, 800}, 0.2 * 15 / 16},
		{"in one", []uint64{1000, 1000, 1000}, []uint64{1000, 500, 1000}, 0},
		{"an outage", []uint64{1000, 1000, 1000, 1000, 1000}, []uint64{700, 0, 0, 400, 1000}, 0},
		{"few frames", []uint64{39, 39, 39}, []uint64{10, 10, 10}, 0},
		{"more than were sent", []uint64{100, 100, 100}, []uint64{1 << 60, 1 << 60, 1 << 60}, 0},
		{"fewer than before", []uint64{100, 100, 100}, []uint64{50, 1<<64 - 50, 1<<64 - 7}, 0},
	} {
		var counts frameCounts
		var reported control.Heartbeat
		loss := 0.0
		for i := range c.sent {
			counts.sent.LongFrames += c.sent[i]
			reported.ShortFrames += c.arrived[i]
			counts.measureLoss(microproto.Instant(1).Add(time.Duration(i)*time.Second), time.Second, reported, &loss)
		}
		require.InDelta(t, c.want, loss, 1e-12, c.name)
	}
}
