package p2psap

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Both nodes name what differs between them.
func TestPeersThatDoNotMatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*NodeConfig)
		says   string
	}{
		"version": {func(c *NodeConfig) { c.Version = "v2" }, `program version: this end has "v2", the peer "v1"`},
		"run":     {func(c *NodeConfig) { c.Run = "other" }, `run: this end has "other", the peer "run"`},
		"catalog": {func(c *NodeConfig) { c.Catalog = standIns("Extra") }, `catalog of micro-protocols`},
		"network": {func(c *NodeConfig) { c.Rails[0].Network = Ethernet },
			`network: this end has "ether", the peer "memory"`},
	} {
		for _, dialler := range []string{"a", "z"} {
			t.Run(name+" "+dialler, func(t *testing.T) {
				w := newWorld(t, 1)
				a, b := w.add(dialler, c.change), w.add("m", nil)
				require.NoError(t, a.Connect(w.now, "m", "m"))
				require.NoError(t, b.Connect(w.now, dialler, dialler))
				w.run(3 * time.Second)
				for n, peer := range map[*worldNode]string{a: "m", b: dialler} {
					state, err := n.Peer(peer)
					require.Equal(t, PeerRefused, state)
					var refused *RefusedError
					require.ErrorAs(t, err, &refused)
					require.Equal(t, peer, refused.Peer)
				}
				_, err := a.Peer("m")
				require.ErrorContains(t, err, c.says)
			})
		}
	}
}

func TestSessionsThatDoNotMatch(t *testing.T) {
	wider := syncOptions("s")
	wider.Slots = []SlotSpec{{1, 72}, {3, 8}}
	for name, c := range map[string]struct {
		other OpenOptions
		a, b  []string
	}{
		"mode": {asyncOptions("s"), []string{"mode: this end is sync, the peer async"},
			[]string{"mode: this end is async, the peer sync"}},
		"slots": {wider, []string{"slot 1: this end has 64 bytes, the peer 72", "slot 2: the peer does not declare it",
			"slot 3: only the peer declares it"}, []string{"slot 1: this end has 72 bytes, the peer 64", "slot 2: only the peer",
			"slot 3: the peer does not"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			a, b := w.add("a", nil), w.add("b", nil)
			w.connect()
			w.run(10 * time.Millisecond)
			sa, err := a.Open(w.now, "b", syncOptions("s"))
			require.NoError(t, err)
			sb, err := b.Open(w.now, "a", c.other)
			require.NoError(t, err)
			w.run(20 * time.Millisecond)
			_, err = a.State(sa)
			for _, text := range append(c.a, `session "s" with peer "b"`) {
				require.ErrorContains(t, err, text)
			}
			_, err = b.State(sb)
			for _, text := range append(c.b, `session "s" with peer "a"`) {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	w := newWorld(t, 2)
	a := w.add("a", nil)
	w.add("b", nil)
	_, err := a.Open(w.now, "b", syncOptions("s"))
	require.ErrorIs(t, err, ErrNotConnected)
	w.connect()
	w.run(10 * time.Millisecond)
	for says, o := range map[string]OpenOptions{
		"name of a session":     {Mode: microproto.ModeSynchronous},
		"must be sync or async": {Name: "s"},
		"declares no slot":      {Name: "s", Mode: microproto.ModeAsynchronous},
		"multiple of 8":         {Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, 12}}},
		"tag 1 twice":           {Name: "s", Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, 8}, {1, 8}}},
		"receive queue":         {Name: "s", Mode: microproto.ModeSynchronous, ReceiveBytes: -1},
	} {
		_, err := a.Open(w.now, "b", o)
		require.ErrorContains(t, err, says)
	}
	require.Error(t, a.Connect(w.now, "a", "x"), "itself")
	_, err = a.Open(w.now, "b", syncOptions("s"))
	require.NoError(t, err)
	_, err = a.Open(w.now, "b", syncOptions("s"))
	require.ErrorIs(t, err, ErrOpen)
}

// Transcripts of whole associations: the control messages in their order.
func TestTranscripts(t *testing.T) {
	scenes := map[string]func(w *world, a, b *worldNode){
		"open_close": func(w *world, a, b *worldNode) {
			sa, _ := a.Open(w.now, "b", syncOptions("halo"))
			w.run(5 * time.Millisecond)
			_, _ = b.Open(w.now, "a", syncOptions("halo"))
			w.run(5 * time.Millisecond)
			_, _ = a.Send(w.now, sa, 2, 1, make([]byte, 8))
			w.run(5 * time.Millisecond)
			a.Close(w.now, sa)
			w.run(5 * time.Millisecond)
			a.Goodbye(w.now)
			w.run(5 * time.Millisecond)
		},
		"open_from_both_sides": func(w *world, a, b *worldNode) {
			_, _ = a.Open(w.now, "b", asyncOptions("halo"))
			_, _ = b.Open(w.now, "a", asyncOptions("halo"))
			w.run(5 * time.Millisecond)
		},
		"broken_connection": func(w *world, a, b *worldNode) {
			_, _ = a.Open(w.now, "b", asyncOptions("halo"))
			w.breakChance = 1
			w.settle()
			w.breakChance = 0
			_, _ = b.Open(w.now, "a", asyncOptions("halo"))
			w.run(60 * time.Millisecond)
		},
		"mode_differs": func(w *world, a, b *worldNode) {
			_, _ = a.Open(w.now, "b", asyncOptions("halo"))
			_, _ = b.Open(w.now, "a", syncOptions("halo"))
			w.run(5 * time.Millisecond)
		},
		"adapt": func(w *world, a, b *worldNode) {
			sa, _ := a.Open(w.now, "b", syncOptions("halo"))
			sb, _ := b.Open(w.now, "a", syncOptions("halo"))
			w.run(5 * time.Millisecond)
			_, _ = a.Send(w.now, sa, 2, 1, make([]byte, 8))
			_, _ = a.Adapt(w.now, sa, microproto.ModeAsynchronous)
			w.run(5 * time.Millisecond)
			_, _ = b.Adapt(w.now, sb, microproto.ModeAsynchronous)
			w.run(10 * time.Millisecond)
			to := a.session(sa).conditions
			to.Distance = Far
			_ = a.proposeConditions(w.now, a.session(sa), to)
			to.Distance = Near
			_ = b.proposeConditions(w.now, b.session(sb), to)
			w.run(10 * time.Millisecond)
			_, _ = a.Adapt(w.now, sa, microproto.ModeAsynchronous)
			_, _ = b.Adapt(w.now, sb, microproto.ModeSynchronous)
			w.run(10 * time.Millisecond)
		},
		"silence": func(w *world, a, b *worldNode) {
			_, _ = a.Open(w.now, "b", syncOptions("halo"))
			_, _ = b.Open(w.now, "a", syncOptions("halo"))
			w.run(5 * time.Millisecond)
			b.muted = true
			w.run(5 * time.Second)
		},
	}
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := newWorld(t, 11)
			w.script = func(format string, a ...any) { fmt.Fprintf(&out, format+"\n", a...) }
			change := func(c *NodeConfig) {
				if name == "adapt" {
					c.Catalog = ctp.Catalog() // the stand-ins are not made for it
				}
			}
			a, b := w.add("a", change), w.add("b", change)
			w.connect()
			w.run(10 * time.Millisecond)
			play(w, a, b)
			golden(t, "testdata/"+name+".golden", out.String())
		})
	}
}
