package p2psap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/trace"
)

// memoryLink is an Ethernet-like link between two nodes of one process.
type memoryLink struct{ free *[]*microproto.Buffer }

func (l memoryLink) Acquire(n int) microproto.Frame {
	if k := len(*l.free); k > 0 {
		b := (*l.free)[k-1]
		*l.free = (*l.free)[:k-1]
		return b.Frame(0, 0, n)
	}
	put := func(b *microproto.Buffer) { *l.free = append(*l.free, b) }
	return microproto.NewBuffer(make([]byte, 1500), put).Frame(0, 0, n)
}

func (memoryLink) Caps(microproto.Mode) microproto.Caps       { return microproto.Caps{MTU: 1400} }
func (memoryLink) Offer(string) ([]byte, error)               { return []byte{1}, nil }
func (memoryLink) Accept([]byte) (microproto.LinkAddr, error) { return 1, nil }

// bareNodes are two nodes, a and b, driven without a driver.
type bareNodes struct {
	tb    testing.TB
	now   microproto.Instant
	nodes [2]*p2psap.Node
	ids   [2]p2psap.SessionID
	out   []p2psap.Output
}

func newBareNodes(tb testing.TB, mode microproto.Mode, bytes int, traced bool) *bareNodes {
	p := &bareNodes{tb: tb, now: 1}
	var free []*microproto.Buffer
	for i := range p.nodes {
		var ring *trace.Ring
		if traced {
			ring = trace.NewRing(trace.Options{})
		}
		node, err := p2psap.NewNode(p2psap.NodeConfig{
			Name: string(rune('a' + i)), Run: "bench", Version: "1", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
			Rails: []p2psap.Rail{{Link: memoryLink{&free}}}, Host: string(rune('a' + i)), Seed: uint64(i + 1),
			PeerTimeout: time.Hour, Trace: ring,
		})
		if err != nil {
			tb.Fatal(err)
		}
		p.nodes[i] = node
	}
	p.nodes[1].ControlUp(p.now, 1, "")
	if err := p.nodes[0].Connect(p.now, "b", "somewhere"); err != nil {
		tb.Fatal(err)
	}
	p.nodes[0].ControlUp(p.now, 1, "b")
	p.settle()
	for i, n := range p.nodes {
		var err error
		p.ids[i], err = n.Open(p.now, string(rune('b'-i)), p2psap.OpenOptions{
			Name: "s", Mode: mode, Slots: []p2psap.SlotSpec{{Tag: 1, Length: bytes}},
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	p.settle()
	return p
}

// settle carries the nodes' outputs out until there are none.
func (p *bareNodes) settle() {
	for busy := true; busy; {
		busy = false
		for i, n := range p.nodes {
			other := p.nodes[1-i]
			frames := n.Frames(0)
			for _, f := range frames {
				f.Peer = 1
				other.Input(p.now, 0, f)
			}
			n.Sent(0, len(frames))
			p.out = n.Drain(p.out[:0])
			for _, o := range p.out {
				if o.Kind == p2psap.OutControl {
					other.Control(p.now, 1, o.Data)
				}
			}
			if n.Deadline() <= p.now {
				n.Advance(p.now)
			}
			busy = busy || len(frames) > 0 || len(p.out) > 0
		}
		p.now += 1000
	}
}

// A message from one node to another, and its acknowledgement: the cost of the core alone.
func BenchmarkMessage(b *testing.B) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, bytes := range []int{8, 8 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%v/%d", mode, bytes), func(b *testing.B) { exchangeMessages(b, mode, bytes, false) })
		}
		b.Run(fmt.Sprintf("%v/8/traced", mode), func(b *testing.B) { exchangeMessages(b, mode, 8, true) })
	}
}

func exchangeMessages(b *testing.B, mode microproto.Mode, bytes int, traced bool) {
	p := newBareNodes(b, mode, bytes, traced)
	data, slot := make([]byte, bytes), p2psap.Slot{Tag: 1, Data: make([]byte, bytes)}
	label := p2psap.Label(0)
	b.ReportAllocs()
	for b.Loop() {
		label++
		if _, err := p.nodes[0].Send(p.now, p.ids[0], 1, label, data); err != nil {
			b.Fatal(err)
		}
		p.settle()
		a, err := p.nodes[1].Receive(p.now, p.ids[1], &slot)
		if err != nil || !a.Fresh {
			b.Fatal(a, err)
		}
		p.now = p.now.Add(50 * time.Millisecond) // delayed acknowledgements are due
		p.settle()
	}
}
