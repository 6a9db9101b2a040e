package p2psap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// end is what the property records of one end of a session.
type sessionEnd struct {
	node     *worldNode
	peer     string
	id       SessionID
	sent     uint64
	received uint64
}

// Sessions are opened from both ends at any time while connections break at any message and messages are
// duplicated or delayed. Every session opens, and synchronous messages arrive once and in order, each
// transfer being accepted.
func TestSessionsSurviveConnections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"))
		w.breakChance = rapid.Float64Range(0, 0.3).Draw(rt, "break")
		w.doubleChance = rapid.Float64Range(0, 0.5).Draw(rt, "double")
		w.lateChance = rapid.Float64Range(0, 0.5).Draw(rt, "late")
		names := []string{"a", "b", "c"}[:rapid.IntRange(2, 3).Draw(rt, "nodes")]
		for _, name := range names {
			w.add(name, func(c *NodeConfig) { c.PeerTimeout = time.Hour; c.Heartbeat = time.Second })
		}
		w.connect()
		everyone := func() bool {
			for _, a := range w.nodes {
				for _, b := range w.nodes {
					if s, _ := a.Peer(b.Name()); a != b && s != PeerUp {
						return false
					}
				}
			}
			return true
		}
		if !w.until(10*time.Minute, everyone) {
			rt.Fatalf("not everyone is connected after ten minutes")
		}
		perPair := rapid.IntRange(1, 4).Draw(rt, "sessions")
		var ends []*sessionEnd
		for i, a := range w.nodes {
			for j, b := range w.nodes {
				for k := 0; k < perPair && i != j; k++ {
					e := &sessionEnd{node: a, peer: b.Name()}
					ends = append(ends, e)
					wait := time.Duration(w.rand.Int64N(int64(100 * time.Millisecond)))
					w.after(wait, func() {
						id, err := a.Open(w.now, b.Name(), syncOptions(fmt.Sprintf("s%d", k)))
						require.NoError(t, err)
						e.id = id
					})
				}
			}
		}
		open := func() bool {
			for _, e := range ends {
				if e.id == 0 || e.node.state(e.id) != SessionOpen {
					return false
				}
			}
			return true
		}
		if !w.until(10*time.Minute, open) {
			rt.Fatalf("not every session is open after ten minutes")
		}
		exchange(rt, w, ends, uint64(rapid.IntRange(1, 20).Draw(rt, "messages")))
		closeAll(rt, w, ends)
	})
}

// exchange sends numbered messages both ways over every session.
func exchange(rt *rapid.T, w *world, ends []*sessionEnd, messages uint64) {
	var words [32][8]byte
	for i := range words {
		binary.BigEndian.PutUint64(words[i][:], uint64(i+1))
	}
	done := func() bool {
		all := true
		for _, e := range ends {
			if e.sent < messages {
				_, err := e.node.Send(w.now, e.id, 2, Label(e.sent+1), words[e.sent][:])
				switch {
				case err == nil:
					e.sent++
				case !errors.Is(err, ErrBusy):
					rt.Fatalf("send: %v", err)
				}
			}
			slot := Slot{Tag: 2, Data: make([]byte, 8)}
			if a, err := e.node.Receive(w.now, e.id, &slot); err == nil {
				e.received++
				if a.Label != e.received || binary.BigEndian.Uint64(slot.Data) != e.received {
					rt.Fatalf("message %d came as number %d", a.Label, e.received)
				}
			} else if !errors.Is(err, ErrNothing) {
				rt.Fatalf("receive: %v", err)
			}
			all = all && e.received == messages && uint64(e.node.Accepted(e.id)) == messages
		}
		return all
	}
	if !w.until(time.Minute, done) {
		rt.Fatalf("not every message has come after a minute")
	}
}

// closeAll closes every session from a random end or both; then no state is left at either.
func closeAll(rt *rapid.T, w *world, ends []*sessionEnd) {
	for _, i := range w.rand.Perm(len(ends)) {
		e := ends[i]
		w.after(time.Duration(w.rand.Int64N(int64(50*time.Millisecond))), func() { e.node.Close(w.now, e.id) })
	}
	w.run(100 * time.Millisecond)
	over := func() bool {
		for _, e := range ends {
			if e.node.state(e.id) != SessionEnded {
				return false
			}
		}
		return true
	}
	if !w.until(10*time.Minute, over) {
		rt.Fatalf("not every session is closed after ten minutes")
	}
	for _, e := range ends {
		e.node.Close(w.now, e.id)
	}
	w.run(10 * time.Second)
	for _, n := range w.nodes {
		for _, s := range n.sessions {
			if s != nil {
				rt.Fatalf("%s still has session %q (%v)", n.Name(), s.options.Name, s.state)
			}
		}
		for _, p := range n.peers {
			if len(p.opens) != 0 {
				rt.Fatalf("%s still knows of a wish to open %q", n.Name(), p.opens[0].Name)
			}
		}
		if len(n.Frames(0)) != 0 {
			rt.Fatalf("%s has %d frames left", n.Name(), len(n.Frames(0)))
		}
	}
}

// An Open that is given up and repeated, any number of times and at both ends, results in an open session or
// in none.
func TestOpenGivenUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"))
		w.breakChance = rapid.Float64Range(0, 0.2).Draw(rt, "break")
		a := w.add("a", func(c *NodeConfig) { c.PeerTimeout = time.Hour; c.Heartbeat = time.Second })
		b := w.add("b", func(c *NodeConfig) { c.PeerTimeout = time.Hour; c.Heartbeat = time.Second })
		w.connect()
		up := func() bool {
			x, _ := a.Peer("b")
			y, _ := b.Peer("a")
			return x == PeerUp && y == PeerUp
		}
		if !w.until(10*time.Minute, up) {
			rt.Fatalf("not connected")
		}
		ids := map[*worldNode]SessionID{}
		for range rapid.IntRange(0, 12).Draw(rt, "moves") {
			n := w.nodes[w.rand.IntN(2)]
			peer := w.nodes[1-n.index].Name()
			if id := ids[n]; id == 0 {
				if id, err := n.Open(w.now, peer, syncOptions("s")); err == nil {
					ids[n] = id
				}
			} else {
				n.Close(w.now, id)
				delete(ids, n)
			}
			w.run(time.Duration(w.rand.Int64N(int64(4 * time.Millisecond))))
		}
		// Faults end; both want the session, and must get it.
		w.breakChance = 0
		w.run(10 * time.Second)
		for _, n := range w.nodes {
			if id := ids[n]; id != 0 && n.state(id) != SessionOpen {
				n.Close(w.now, id)
				delete(ids, n)
			}
		}
		w.run(10 * time.Second)
		if (ids[a] == 0) != (ids[b] == 0) {
			for n, id := range ids { // one end only: the other closed, and this end must know
				if s := n.state(id); s != SessionRemoteClosed {
					rt.Fatalf("%s alone has the session, %v", n.Name(), s)
				}
				n.Close(w.now, id)
			}
			ids = map[*worldNode]SessionID{}
		}
		for _, n := range w.nodes {
			if ids[n] == 0 {
				id, err := n.Open(w.now, w.nodes[1-n.index].Name(), syncOptions("s"))
				if err != nil {
					rt.Fatalf("open again: %v", err)
				}
				ids[n] = id
			}
		}
		w.run(10 * time.Second)
		for n, id := range ids {
			if n.state(id) != SessionOpen {
				rt.Fatalf("%s: the session is %v", n.Name(), n.state(id))
			}
		}
		ends := []*sessionEnd{{node: a, id: ids[a]}, {node: b, id: ids[b]}}
		exchange(rt, w, ends, 5)
	})
}
