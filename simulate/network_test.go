package simulate

import (
	"context"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// still returns an engine without events of its own.
func still(m *cluster.Model) *engine {
	n := len(m.Hosts)
	e := &engine{run: &Config{Model: m, New: ownPeer, Peers: n}, model: m, began: microproto.Never,
		slow: make([]float64, n), lost: make([]bool, n)}
	e.run.place()
	e.findStations(n)
	for rank := range n {
		w := e.newMachine(rank)
		w.costly = true
		w.host = virtual.NewHost(w, virtual.Config{Config: exchange.Config{Rank: iterate.Rank(rank), Peer: &counted{}}})
		e.hosts = append(e.hosts, w)
	}
	e.connect(n)
	return e
}

// train returns a train of so many frames of that length.
func (e *engine) train(to, frames, bytes int) microproto.Frame {
	f := e.hosts[0].memory.acquire(frames * bytes)
	if frames > 1 {
		f.Segment = bytes
	}
	f.Peer = addrOf(to)
	return f
}

// delivery is an arrival at a node.
type delivery struct {
	at     time.Duration
	to     int
	frames int
}

// deliveries runs all events, and returns the arrivals.
func (e *engine) deliveries() (out []delivery) {
	for {
		first := e.processes[0]
		for _, p := range e.processes {
			if p.readInbox() < first.readInbox() {
				first = p
			}
		}
		if first.readInbox() == microproto.Never {
			return out
		}
		first.scheduleInbox()
		ev := first.queue.pop()
		first.now = ev.at
		switch m, _ := first.owner.(*machine); ev.kind {
		case evRoom: // the hosts of this engine have no nodes
		case evInput:
			f := ev.what
			out = append(out, delivery{time.Duration(ev.at), int(f.to), int(f.count) - bits.OnesCount64(f.lost)})
			m.waiting = max(0, m.waiting-len(f.frame.Data))
			m.land(f)
		default:
			first.owner.happen(&ev)
		}
	}
}

// A frame of 962 bytes takes 8 µs on a line of 1 Gbit/s with 38 bytes around it. A switch that
// stores and forwards takes as long again.
func TestIdleLine(t *testing.T) {
	us := time.Microsecond
	for _, c := range []struct {
		name   string
		frames int
		change func(m *cluster.Model)
		want   time.Duration
	}{
		{"one frame", 1, func(*cluster.Model) {}, 8*us + 20*us + 8*us},
		{"a train", 10, func(*cluster.Model) {}, 80*us + 20*us + 8*us},
		{"ib cuts through", 10, func(m *cluster.Model) { m.Networks[0].Kind = cluster.IB }, 80*us + 20*us},
		{"costs under way", 10, func(m *cluster.Model) { cheap(m, 1000) }, us + 80*us + 20*us + 8*us + us},
		{"costs beyond the line", 10, func(m *cluster.Model) { cheap(m, 20000) },
			20*us + 9*20*us + 8*us + 20*us + 8*us + 20*us},
		{"bytes", 1, func(m *cluster.Model) {
			m.Hosts[0].Send.Byte, m.Hosts[1].Receive.Byte = 10, 20
		}, 9620 + 8*us + 20*us + 8*us + 19240},
		{"backplane", 10, func(m *cluster.Model) { m.Networks[0].Backplane = 250e6 }, 80*us + 20*us + 8*us},
		{"slow backplane", 10, func(m *cluster.Model) { m.Networks[0].Backplane = 62.5e6 }, 8*us + 20*us + 160*us + 8*us},
		{"two sites", 10, func(m *cluster.Model) {
			split(t, m, cluster.WANLink{Rate: 125e6, Latency: 5 * time.Millisecond})
		}, 80*us + 20*us + 8*us + 5000*us + 20*us + 8*us},
		{"two sites far", 10, func(m *cluster.Model) {
			split(t, m, cluster.WANLink{Rate: 12.5e6, Latency: 5 * time.Millisecond})
		}, 8*us + 20*us + 800*us + 5000*us + 20*us + 8*us},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := gigabit(2)
			c.change(m)
			e := still(m)
			require.True(t, e.hosts[0].Carry(nil, 0, e.train(1, c.frames, 962)))
			require.Equal(t, []delivery{{c.want, 1, c.frames}}, e.deliveries())
			require.Zero(t, e.hosts[0].memory.lent.Load())
		})
	}
}

func cheap(m *cluster.Model, segment time.Duration) {
	for i := range m.Hosts {
		m.Hosts[i].Send.Segment, m.Hosts[i].Receive.Segment = segment, segment
	}
}

// split puts the upper half of the machines into a second site.
func split(t require.TestingT, m *cluster.Model, w cluster.WANLink) {
	w.Between = [2]string{"here", "there"}
	d := cluster.Description{Name: "split", Classes: []cluster.Class{m.Hosts[0].Class}, Networks: m.Networks,
		WAN: []cluster.WANLink{w}, Events: m.Events}
	for _, name := range w.Between {
		d.Sites = append(d.Sites, cluster.Site{Name: name, Network: m.Networks[0].Name,
			Machines: []cluster.Group{{Class: m.Hosts[0].Name}}})
	}
	two, err := d.Model(len(m.Hosts))
	require.NoError(t, err)
	*m = *two
}

// Two senders to one receiver share its port. Each has its own line, and a third host is not
// delayed.
func TestPortIsShared(t *testing.T) {
	us := time.Microsecond
	e := still(gigabit(4))
	for _, from := range []int{0, 1} {
		require.True(t, e.hosts[from].Carry(nil, 0, e.train(2, 10, 962)))
	}
	require.True(t, e.hosts[0].Carry(nil, 0, e.train(3, 1, 962)))
	require.Equal(t, []delivery{
		{108 * us, 2, 10},
		{(88 + 20 + 8) * us, 3, 1}, // after the train on its line
		{(108 + 80) * us, 2, 10},
	}, e.deliveries())
}

// Frames that a port's queue cannot hold are lost (ether), or stay at their sender (ib).
func TestFullPort(t *testing.T) {
	m := gigabit(3)
	m.Networks[0].Queue = 5000 // five frames of a thousand bytes
	e := still(m)
	for _, from := range []int{0, 1} {
		require.True(t, e.hosts[from].Carry(nil, 0, e.train(2, 20, 962)))
	}
	got := e.deliveries()
	require.Equal(t, 25, got[0].frames+got[1].frames, "one leaves while two come, and five wait in the end")
	require.Equal(t, uint64(15), e.hosts[0].gone.Load()+e.hosts[1].gone.Load())

	m.Networks[0].Kind = cluster.IB
	e = still(m)
	for _, from := range []int{0, 1} {
		require.True(t, e.hosts[from].Carry(nil, 0, e.train(2, 20, 962)))
	}
	got = e.deliveries()
	require.Equal(t, 40, got[0].frames+got[1].frames)
	require.Equal(t, microproto.Instant(20*time.Microsecond+320*time.Microsecond-40*time.Microsecond-20*time.Microsecond),
		e.hosts[1].line.free)
}

// A train takes room in a full port only as its frames arrive, so single frames of others pass
// between them.
func TestFullPortIsShared(t *testing.T) {
	m := gigabit(3)
	m.Networks[0].Queue = 5000
	e := still(m)
	require.True(t, e.hosts[0].Carry(nil, 0, e.train(2, 60, 962)))
	require.True(t, e.hosts[0].Carry(nil, 0, e.train(2, 60, 962)))
	for i := range 40 {
		e.hosts[1].now = microproto.Instant((50 + 21*i) * int(time.Microsecond))
		require.True(t, e.hosts[1].Carry(nil, 0, e.train(2, 1, 962)))
	}
	e.deliveries()
	single, train := int(e.hosts[1].gone.Load()), int(e.hosts[0].gone.Load())
	require.Positive(t, single+train)
	require.Less(t, single, 34, "of 40; of the trains %d of 120", train)
	require.InDelta(t, 40-5, single+train, 3, "the port is never idle")
}

// A line, or a shaper in the machine, that holds as much as the send queue takes accepts frames again when half of
// them have left; then its host is called. A machine knows nothing of a shaper outside.
func TestFullLine(t *testing.T) {
	shaper := cluster.Shaper{Rate: 12.5e6, Queue: 1 << 20}
	for _, c := range []struct {
		name   string
		shaper cluster.Shaper
		queue  int
		room   time.Duration // of the queue
		most   int           // trains of 40 000 bytes
	}{
		{"a millisecond", cluster.Shaper{}, 0, time.Millisecond, 4},
		// Frames of 1472 bytes, 1510 on the line, count 2240 in the queue.
		{"frames", shaper, 0, minSendQueue * 80 * 1510 / 2240, 2},
		{"given", shaper, 200_000, 200_000 * 80 * 1510 / 2240, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := gigabit(2)
			m.Networks[0].Shaper = c.shaper
			e := still(m)
			e.run.SendQueue = c.queue
			e.connect(len(m.Hosts))
			h := e.hosts[0]
			sent := 0
			for h.Carry(nil, 0, e.train(1, 40, 962)) {
				sent++
			}
			require.Equal(t, c.most, sent)
			require.True(t, h.full)
			h.now = h.now.Add(c.room / 4)
			require.False(t, h.Carry(nil, 0, e.train(1, 40, 962)), "the link has not reported room")
			told := 0
			for _, ev := range h.queue.heap {
				if ev.kind == evRoom {
					told++
					require.InDelta(t, float64(c.room/2), float64(h.line.sent(&e.routes[0].shaper).Sub(ev.at)), 1)
				}
			}
			require.Equal(t, 1, told)
		})
	}
	m := gigabit(2)
	m.Networks[0].Shaper = shaper
	m.Networks[0].Shaper.Outside = true
	e := still(m)
	for range 100 {
		require.True(t, e.hosts[0].Carry(nil, 0, e.train(1, 40, 962)))
	}
	require.Greater(t, e.hosts[0].gone.Load(), uint64(100*40/2))
}

// Every frame arrives or counts as lost, in order between two hosts, and never too early.
func TestNetworkKeepsAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := gigabit(4)
		k := &m.Networks[0]
		k.Kind = rapid.SampledFrom([]string{cluster.Ether, cluster.IB}).Draw(t, "kind")
		k.Queue = rapid.IntRange(0, 20000).Draw(t, "queue")
		k.Loss = rapid.SampledFrom([]float64{0, 0.1, 0.9}).Draw(t, "loss")
		k.Jitter = time.Duration(rapid.IntRange(0, 1e6).Draw(t, "jitter"))
		k.Backplane = rapid.SampledFrom([]float64{0, 1e8}).Draw(t, "backplane")
		if rapid.Bool().Draw(t, "costs") {
			cheap(m, 3000)
		}
		if k.Kind == cluster.Ether && rapid.Bool().Draw(t, "sites") {
			split(t, m, cluster.WANLink{Rate: 2e7, Latency: time.Millisecond, Queue: 10000, Loss: 0.05,
				Jitter: time.Millisecond})
		}
		e := still(m)
		now := microproto.Instant(0)
		sent := 0
		least := 8*time.Microsecond + 20*time.Microsecond
		for range rapid.IntRange(1, 30).Draw(t, "trains") {
			now += microproto.Instant(rapid.IntRange(0, 200000).Draw(t, "gap"))
			for _, m := range e.hosts {
				m.now = now
			}
			from, to := rapid.IntRange(0, 3).Draw(t, "from"), rapid.IntRange(0, 3).Draw(t, "to")
			n := rapid.IntRange(1, 64).Draw(t, "frames")
			if from == to {
				continue
			}
			if f := e.train(to, n, 962); e.hosts[from].Carry(nil, 0, f) {
				sent += n
			} else {
				f.Release()
			}
		}
		got, last := 0, time.Duration(0)
		for _, d := range e.deliveries() {
			got += d.frames
			require.GreaterOrEqual(t, d.at, last)
			require.GreaterOrEqual(t, d.at, least)
			last = d.at
		}
		lost := uint64(0)
		for _, m := range e.hosts {
			lost += m.gone.Load()
		}
		require.Equal(t, sent, got+int(lost))
		require.Zero(t, e.hosts[0].memory.lent.Load())
	})
}

// A lost machine sends and receives nothing. Over a cut only control messages pass, after it has
// healed.
func TestSilence(t *testing.T) {
	e := still(gigabit(4))
	e.lost[1] = true
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		require.True(t, e.hosts[way[0]].Carry(nil, 0, e.train(way[1], 3, 962)))
		require.Equal(t, uint64(3), e.hosts[way[0]].gone.Load())
	}
	e.hosts[1].sendControl(0, evMessage, 0, controlMessage{})
	require.Empty(t, e.deliveries())

	e = still(gigabit(4))
	cut := cluster.Event{Until: time.Millisecond, Cut: [2]string{"here", ""}}
	e.began, e.cuts = 0, []*cluster.Event{&cut}
	require.True(t, e.hosts[0].Carry(nil, 0, e.train(3, 3, 962)))
	require.True(t, e.hosts[0].Carry(nil, 0, e.train(1, 3, 962)), "they are in one half")
	got := e.deliveries()
	require.Len(t, got, 1)
	require.Equal(t, 1, got[0].to)
	healed := microproto.Instant(time.Millisecond + 20*time.Microsecond)
	require.Equal(t, healed, e.hosts[0].sendControl(2, evMessage, 0, controlMessage{}))
	require.Equal(t, healed+1, e.hosts[0].sendControl(2, evMessage, healed+1, controlMessage{}), "in order")
	require.Equal(t, microproto.Instant(20*time.Microsecond), e.hosts[0].sendControl(1, evMessage, 0,
		controlMessage{})-e.hosts[0].now)
	cut.Until = 0
	require.Equal(t, microproto.Never, e.hosts[0].sendControl(2, evMessage, 0, controlMessage{}))
}

// A flight longer than the receive queue is not lost as a whole: frames are accepted while there is
// room, and room is made while the rest arrives. On an ib network 1000 segments may wait.
func TestLongFlightsAreTaken(t *testing.T) {
	play := func(kind string, accepts int, slow float64) int {
		m := gigabit(2)
		m.Networks[0].Kind = kind
		m.Networks[0].MTU = 8128
		m.Networks[0].Queue = 0
		m.Hosts[1].Receive.Byte = slow * 8 // nanoseconds per byte; the line takes 8
		e := still(m)
		if accepts > 0 {
			e.run.ReceiveQueue = accepts
			e.connect(2)
		}
		f := e.train(1, 64, 8128)
		f.Mode = microproto.ModeAsynchronous
		require.True(t, e.hosts[0].Carry(e.hosts[0].host, 0, f))
		frames := 0
		for _, d := range e.deliveries() {
			frames += d.frames
		}
		require.EqualValues(t, 64-frames, e.hosts[0].gone.Load())
		return frames
	}
	require.Equal(t, 64, play(cluster.IB, 0, 100), "half a megabyte fits 1000 segments")
	require.Equal(t, 64, play(cluster.Ether, 0, 0.9), "it handles them as fast as they come")
	some := play(cluster.Ether, 0, 2) // 26 fit, and half of those that arrive meanwhile are handled
	require.InDelta(t, 26+(64-26)/2.0+13/2.0, some, 8)
	require.Equal(t, 64, play(cluster.IB, 0, 2))
	require.Less(t, play(cluster.IB, 8128*4, 100), 8)
	require.Zero(t, play(cluster.Ether, 8000, 2), "not even one fits")
}

// A peer with a verdict lingers until its last messages have been accepted. Otherwise a neighbour
// could wait for ever on a lossy network.
func TestLastFacesArrive(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		m := gigabit(8)
		m.Networks[0].Loss = 0.15
		run := runOf(t, m, membrane(5), iterate.Synchronous(), 8)
		run.Solver.Tolerance = 1e-3
		run.Seed = seed
		run.Until = 5 * time.Minute
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, r.Reason, "seed %d", seed)
	}
}
