package p2psap

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/trace"
)

// recordedRun sends messages from node a to node b over a path that loses frames. It returns the records of both nodes
// and a hash of all frames.
func recordedRun(
	t *testing.T, mode microproto.Mode, inter bool, o *trace.Options, change ...func(*NodeConfig),
) (nodes []*trace.Node, frames uint64) {
	w := newWorld(t, 11)
	w.latency = 50 * time.Microsecond
	h := fnv.New64a()
	w.tap = func(_, _ *worldNode, frame []byte) { _, _ = h.Write(frame) }
	at := func(cluster string) func(*NodeConfig) {
		return func(c *NodeConfig) {
			c.Catalog, c.Rails[0].Network, c.Cluster = ctp.Catalog(), Ethernet, "one"
			c.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2." + fmt.Sprint(1+len(w.nodes)) + "/24")}
			if inter {
				c.Cluster = cluster
			}
			if o != nil {
				c.Trace = trace.NewRing(*o)
			}
			for _, f := range change {
				f(c)
			}
		}
	}
	a, b := w.add("a", at("one")), w.add("b", at("two"))
	w.connect()
	w.run(10 * time.Millisecond)
	open := OpenOptions{Name: "s", Mode: mode, Slots: []SlotSpec{{1, 40_000}, {2, 800}}}
	sa, err := a.Open(w.now, "b", open)
	require.NoError(t, err)
	sb, err := b.Open(w.now, "a", open)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	w.frameLoss = 0.02
	slot := [3]Slot{1: {Tag: 1, Data: make([]byte, 40_000)}, 2: {Tag: 2, Data: make([]byte, 800)}}
	for label := Label(1); label <= 60; label++ {
		if label == 30 {
			w.run(time.Second) // longer than the retransmission time-out
		}
		for tag := range Tag(2) {
			if _, err := a.Send(w.now, sa, tag+1, label, slot[tag+1].Data); err != nil {
				require.ErrorIs(t, err, ErrBusy)
			}
			w.run(2 * time.Millisecond)
			for _, s := range slot[1:] {
				_, err := b.Receive(w.now, sb, &s)
				require.True(t, err == nil || err == ErrNothing, err)
			}
		}
	}
	w.run(10 * time.Second)
	for _, s := range slot[1:] {
		for {
			got, err := b.Receive(w.now, sb, &s)
			if err != nil || !got.Fresh {
				break
			}
		}
	}
	return []*trace.Node{a.Snapshot(w.now), b.Snapshot(w.now)}, h.Sum64()
}

func count(n *trace.Node, k trace.Kind) (c int) {
	for i := range n.Records {
		if n.Records[i].Kind == k {
			c++
		}
	}
	return c
}

// What is sent at one end is recorded as received at the other, under the same numbers.
func TestRecordsOfBothEndsAgree(t *testing.T) {
	for _, inter := range []bool{false, true} {
		t.Run(fmt.Sprint("inter=", inter), func(t *testing.T) {
			nodes, _ := recordedRun(t, microproto.ModeSynchronous, inter, &trace.Options{})
			a, b := nodes[0], nodes[1]
			type key struct {
				tag, value uint32
				label      uint64
			}
			sent, segments, arrived, lost := map[key]bool{}, map[uint64]int{}, 0, map[trace.Cause]int{}
			last := uint64(0)
			for _, r := range a.Records {
				switch r.Kind {
				case trace.Send:
					sent[key{r.Tag, r.Value, r.Number}] = true
					require.NotZero(t, r.Window)
				case trace.SegmentOut:
					segments[r.Number]++
				case trace.Accepted:
					require.Greater(t, r.Number, last)
					last = r.Number
				case trace.IdleRestart:
					require.Greater(t, time.Duration(r.Number), 200*time.Millisecond)
				case trace.Loss:
					lost[r.Cause]++
				}
			}
			require.Greater(t, len(sent), 100)
			require.EqualValues(t, len(sent), last, "all were accepted")
			for _, r := range b.Records {
				switch r.Kind {
				case trace.Receive:
					require.True(t, sent[key{r.Tag, r.Value, r.Number}], r)
					delete(sent, key{r.Tag, r.Value, r.Number})
				case trace.SegmentIn:
					arrived++
					require.NotZero(t, segments[r.Number])
				}
			}
			require.Empty(t, sent)
			require.NotZero(t, lost[trace.ByDuplicates])
			info := 0
			for number, n := range segments {
				if number != 0 {
					info += n - 1
				}
			}
			require.GreaterOrEqual(t, info, lost[trace.ByDuplicates], "each loss made a transmission more")
			l := a.Layout(1, 0)
			require.Equal(t, Session(a), trace.Session{Name: "s", Peer: "b"})
			require.Equal(t, inter, l.WAN)
			require.Equal(t, "session.version", l.Fields[0].Name)
			require.Equal(t, 1, count(a, trace.EpochBegin))
			if inter {
				require.NotZero(t, count(a, trace.WindowFull))
				require.NotZero(t, count(a, trace.IdleRestart))
			}
		})
	}
}

// Session returns the only session of a node.
func Session(n *trace.Node) trace.Session { return n.Session(1) }

// Losses of an asynchronous session between clusters are recorded, and values that gave way to newer ones.
func TestAsynchronousLossesAreRecorded(t *testing.T) {
	nodes, _ := recordedRun(t, microproto.ModeAsynchronous, true, &trace.Options{})
	a, lost := nodes[0], 0
	for _, r := range a.Records {
		if r.Kind == trace.Loss {
			lost += int(r.Count)
		}
	}
	require.NotZero(t, lost)
	require.NotZero(t, count(a, trace.WindowFull))
	require.NotZero(t, count(nodes[1], trace.Receive))
}

// A trace changes nothing that a node sends.
func TestRecordingChangesNothing(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		_, plain := recordedRun(t, mode, true, nil)
		for _, o := range []trace.Options{{}, {FrameBytes: 64}, {Steps: true, Bytes: trace.MinBytes}} {
			_, traced := recordedRun(t, mode, true, &o)
			require.Equal(t, plain, traced, "%v", o)
		}
	}
}

// Of a protected session only headers are kept, before they are encrypted.
func TestContentsOfProtectedSessionsAreNotKept(t *testing.T) {
	nodes, _ := recordedRun(t, microproto.ModeSynchronous, true, &trace.Options{FrameBytes: 200}, func(c *NodeConfig) {
		random := rand.New(rand.NewPCG(c.Seed, 3))
		c.Protect, c.Entropy = ProtectAlways, func(b []byte) {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
		}
	})
	for _, n := range nodes {
		l, kept := n.Layout(1, 0), 0
		require.True(t, l.Sealed)
		require.NotEqual(t, "SessionHeader", l.Fields[0].Protocol)
		for _, f := range n.Frames {
			require.True(t, len(f) == 0 || len(f) == l.HeaderBytes)
			kept += len(f)
		}
		require.NotZero(t, kept)
	}
}

// The frames kept hold the fields where the layout says.
func TestLayoutsDescribeTheFramesKept(t *testing.T) {
	nodes, _ := recordedRun(t, microproto.ModeSynchronous, true, &trace.Options{FrameBytes: 64})
	a, b := nodes[0], nodes[1]
	for _, n := range nodes {
		l := n.Layout(1, 0)
		field := func(frame []byte, name string) (v uint64) {
			for _, f := range l.Fields {
				if f.Name == name {
					for _, x := range frame[f.Offset : f.Offset+f.Length] {
						v = v<<8 | uint64(x)
					}
				}
			}
			return v
		}
		seen := 0
		for i, r := range n.Records {
			if r.Kind != trace.SegmentOut && r.Kind != trace.SegmentIn {
				continue
			}
			seen++
			f := n.Frames[i]
			require.GreaterOrEqual(t, len(f), l.HeaderBytes)
			require.Equal(t, r.Number, field(f, "sequenced.number"))
			if r.Kind == trace.SegmentOut {
				require.EqualValues(t, l.Remote, field(f, "session.session"))
			} else {
				require.EqualValues(t, l.Local, field(f, "session.session"))
			}
		}
		require.NotZero(t, seen)
	}
	require.Equal(t, a.Layout(1, 0).Remote, b.Layout(1, 0).Local)
	require.NotEmpty(t, a.Pings)
}

// lines returns the records of the kinds, as text.
func lines(n *trace.Node, kinds ...trace.Kind) (out []string) {
	for _, r := range n.Records {
		if slices.Contains(kinds, r.Kind) {
			rail := "none"
			if int(r.Rail) < len(n.Rails) {
				rail = n.Rails[r.Rail]
			}
			out = append(out, fmt.Sprintf("%v %s epoch %d %s", r.Kind, rail, r.Epoch, n.Text(r.Value)))
		}
	}
	return out
}

// A session that leaves a rail, and comes back, is recorded with its epochs and moves.
func TestMovesAreRecorded(t *testing.T) {
	w, a, b := railed(t, nil)
	a.Node.config.Trace, a.Node.recording = trace.NewRing(trace.Options{}), true
	_, err := a.Open(w.now, "b", syncOptions("s"))
	require.NoError(t, err)
	_, err = b.Open(w.now, "a", syncOptions("s"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	a.fall(w)
	w.run(time.Second)
	a.rise(w)
	w.run(10 * time.Second)
	n := a.Snapshot(w.now)
	var got []string
	for _, r := range n.Records {
		switch r.Kind {
		case trace.RailDown, trace.RailUp:
			require.Equal(t, "b", n.Text(r.Tag))
			got = append(got, fmt.Sprintf("%v %s", r.Kind, n.Rails[r.Rail]))
		case trace.EpochBegin:
			l := n.Layouts[r.Number]
			require.Equal(t, r.Epoch, l.Epoch)
			got = append(got, fmt.Sprintf("epoch %d %s", r.Epoch, l.Network))
		case trace.Move:
			got = append(got, "move to "+n.Rails[r.Rail])
		}
	}
	require.Equal(t, []string{
		"epoch 0 ib", "rail.down ib", "epoch 1 ether", "move to ether", "rail.up ib", "epoch 2 ib", "move to ib",
	}, got)
}

// Frames that give way to newer ones while the rail is busy, and those beyond the bound, are recorded with the reason.
func TestReplacedAndDroppedFramesAreRecorded(t *testing.T) {
	w := newWorld(t, 3)
	add := func(name string) *worldNode {
		return w.add(name, func(c *NodeConfig) {
			c.Limits.QueuedFrames = 3
			c.Trace = trace.NewRing(trace.Options{})
		})
	}
	a, b := add("a"), add("b")
	w.connect()
	w.run(10 * time.Millisecond)
	o := OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, 8}, {2, 8}, {3, 8}, {4, 8}}}
	sa, err := a.Open(w.now, "b", o)
	require.NoError(t, err)
	_, err = b.Open(w.now, "a", o)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	a.busy = true
	for label, tag := range []Tag{1, 1, 2, 3, 4} {
		_, err := a.Send(w.now, sa, tag, Label(label), make([]byte, 8))
		require.NoError(t, err)
		w.settle()
	}
	n := a.Snapshot(w.now)
	require.Equal(t, []string{
		"replaced memory epoch 0 the rail is busy", "dropped memory epoch 0 too many frames wait for the rail",
	}, lines(n, trace.Replaced, trace.Dropped))
}
