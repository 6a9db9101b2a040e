package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
)

type phase int

const (
	phaseNew phase = iota
	phaseConnecting
	phaseOpening
	phaseRunning
	phaseClosing
	phaseClosed
)

// peer is one peer's shell: what solver/runner and p2psap/driver are in real time.
type peer struct {
	c       *Cluster
	rank    solver.Rank
	node    *p2psap.Node
	worker  solver.Peer
	adapter *adapter // nil: it has none
	cost    Cost
	phase   phase
	began   microproto.Instant // when the sessions were open
	points  uint64

	neighbours []*neighbour
	busy       microproto.Instant // relaxing or sending until then
	todo       func() bool        // what the last operation waits for; true when it is done
	waiting    bool               // for an arrival, or until the time below
	armed      microproto.Instant // the node's next look
	due        microproto.Instant // the peer's own
	out        []p2psap.Output
}

// neighbour is the traffic with one neighbour.
type neighbour struct {
	solver.Link
	name        string
	halo, agree p2psap.SessionID
	loose       bool // the scheme wants the halo session asynchronous
	async       bool // it is, at present
	slots       []p2psap.Slot
	letter      p2psap.Slot
	buffers     [2]outgoing
	newest      int

	// What the other end has closed, as sends found out, and as receives did: what it
	// sent before can still be read, tag by tag.
	haloClosed, agreeClosed bool
	haloRead                []bool // by tag: nothing more will come
	agreeRead               bool
}

// outgoing is a face on its way; its memory is the session's until accepted.
type outgoing struct {
	room     []byte // for the longest
	data     []byte
	transfer p2psap.Transfer
}

func nameOf(r solver.Rank) string { return fmt.Sprintf("peer%d", r) }

// anyOrder is an Executor that cuts work differently from call to call, backwards.
type anyOrder struct{ rand *rand.Rand }

// For calls f in a random cyclic order.
func (e anyOrder) For(n int, f func(int)) {
	if n == 0 {
		return
	}
	start := e.rand.IntN(n)
	for i := range n {
		f((start + n - i) % n)
	}
}

func newPeer(c *Cluster, rank solver.Rank, catalog *microproto.Catalog, policy p2psap.Policy) (*peer, error) {
	s := c.Scenario
	p := &peer{c: c, rank: rank, cost: s.Costs[rank], armed: microproto.Never, due: microproto.Never}
	var err error
	p.node, err = p2psap.NewNode(p2psap.NodeConfig{
		Name: nameOf(rank), Run: "sim", Version: "sim", Catalog: catalog, Policy: policy, Link: contact{c, rank},
		Network: p2psap.Ethernet, Rails: p.rails(), Watch: p2psap.Watch{RailDwell: 4 * s.After.Delay}, Cluster: s.label(rank), Host: nameOf(rank), Process: uint64(rank) + 1, Seed: c.rand.Uint64(),
		Tracer: tracer{c}, Protect: s.Protect, Entropy: s.entropy(rank),
	})
	if err != nil {
		return nil, err
	}
	p.worker, err = solver.New(s.config(rank, anyOrder{rand.New(rand.NewPCG(s.Seed, uint64(rank)))}))
	if err != nil {
		return nil, err
	}
	for _, l := range p.worker.Links() {
		p.neighbours = append(p.neighbours, newNeighbour(l))
	}
	return p, nil
}

func newNeighbour(l solver.Link) *neighbour {
	nb := &neighbour{Link: l, name: nameOf(l.Rank), loose: l.Asynchronous, async: l.Asynchronous}
	for t, n := range l.Slots {
		nb.haloRead = append(nb.haloRead, false)
		nb.slots = append(nb.slots, p2psap.Slot{Tag: p2psap.Tag(t), Data: make([]byte, n)})
	}
	longest := 0
	for _, n := range l.Sent {
		longest = max(longest, n)
	}
	for i := range nb.buffers {
		nb.buffers[i].room = make([]byte, longest)
	}
	nb.letter.Data = make([]byte, l.Agreement)
	nb.agreeClosed, nb.agreeRead = l.Agreement == 0, l.Agreement == 0
	nb.haloClosed = !nb.hasHalo()
	return nb
}

// hasHalo tells whether the link has a halo session.
func (nb *neighbour) hasHalo() bool { return len(nb.Slots)+len(nb.Sent) > 0 }

// read tells that nothing more will come under a tag.
func (nb *neighbour) read(tag uint32) bool { return int(tag) < len(nb.haloRead) && nb.haloRead[tag] }

// sessions are those that the link has.
func (nb *neighbour) sessions() []p2psap.SessionID {
	var out []p2psap.SessionID
	if nb.hasHalo() {
		out = append(out, nb.halo)
	}
	if nb.Agreement > 0 {
		out = append(out, nb.agree)
	}
	return out
}

// entropy is where a peer's keys come from, nil without protection.
func (s *Scenario) entropy(rank solver.Rank) p2psap.Entropy {
	if s.Protect == p2psap.ProtectDefault {
		return nil
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x656e74726f7079+uint64(rank)))
	return func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
}

// tracer hands on to the cluster's, which may be set later.
type tracer struct{ c *Cluster }

func (t tracer) Trace(now microproto.Instant, r microproto.TraceRecord) {
	if t.c.Tracer != nil {
		t.c.Tracer.Trace(now, r)
	}
}

// config is the solver's configuration of one rank.
func (s *Scenario) config(rank solver.Rank, e solver.Executor) solver.Config {
	return solver.Config{
		Problem: s.Problem, Partition: s.Partition, Rank: rank, Scheme: s.Scheme, Order: s.Order, Method: s.Method, Executor: e,
		Tolerance: s.Tolerance, MaxSweeps: s.MaxSweeps, CheckEvery: s.Every, Lag: s.Lag, Repeat: s.Repeat, Reconfigure: s.Reconfigure, Balance: s.Balance, BalanceWindow: s.Window,
	}
}

func (p *peer) now() time.Duration { return p.c.clock.Now().Sub(p.began) }

// start connects to the neighbours.
func (p *peer) start() {
	p.phase = phaseConnecting
	for _, nb := range p.neighbours {
		p.c.fail(p, p.node.Connect(p.c.clock.Now(), nb.name, nb.name))
	}
	p.settle()
	p.proceed()
}

// touched: something has happened on the node.
func (p *peer) touched() {
	switch p.phase {
	case phaseConnecting, phaseOpening, phaseClosing:
		p.wake(p.c.clock.Now())
	case phaseRunning:
		if p.waiting || p.todo != nil {
			p.wake(p.c.clock.Now())
		}
	}
}

// wake plans the peer's next turn; only the earliest counts.
func (p *peer) wake(at microproto.Instant) {
	at = max(at, p.busy)
	if at >= p.due && p.due >= p.c.clock.Now() {
		return
	}
	p.due = at
	p.c.clock.At(at, func() {
		if p.due == at {
			p.due = microproto.Never
			p.proceed()
			p.settle()
		}
	})
}

// proceed goes on from wherever the peer stands.
func (p *peer) proceed() {
	switch p.phase {
	case phaseConnecting:
		p.connecting()
	case phaseOpening:
		p.opening()
	case phaseRunning:
		p.running()
	case phaseClosing:
		p.closing()
	}
}

func (p *peer) connecting() {
	for _, nb := range p.neighbours {
		if state, _ := p.node.Peer(nb.name); state != p2psap.PeerUp {
			return
		}
	}
	for _, nb := range p.neighbours {
		p.open(nb)
	}
	p.phase = phaseOpening
	p.settle()
	p.opening()
}

// sessionName is the same at both ends.
func sessionName(kind string, a, b solver.Rank) string {
	return fmt.Sprintf("%s/%d-%d", kind, min(a, b), max(a, b))
}

func (p *peer) open(nb *neighbour) {
	now := p.c.clock.Now()
	halo := p2psap.OpenOptions{Name: sessionName("halo", p.rank, nb.Rank), Mode: microproto.ModeSynchronous}
	if nb.async {
		halo.Mode = microproto.ModeAsynchronous
	}
	for _, s := range nb.slots {
		halo.Slots = append(halo.Slots, p2psap.SlotSpec{Tag: s.Tag, Length: len(s.Data)})
	}
	agree := p2psap.OpenOptions{
		Name: sessionName("agree", p.rank, nb.Rank), Mode: microproto.ModeSynchronous,
		Slots: []p2psap.SlotSpec{{Length: len(nb.letter.Data)}},
	}
	var err, err2 error
	if nb.hasHalo() {
		nb.halo, err = p.node.Open(now, nb.name, halo)
	}
	if nb.Agreement > 0 {
		nb.agree, err2 = p.node.Open(now, nb.name, agree)
	}
	p.c.fail(p, errors.Join(err, err2))
}

func (p *peer) opening() {
	for _, nb := range p.neighbours {
		for _, id := range nb.sessions() {
			switch state, err := p.node.State(id); state {
			case p2psap.SessionOpen, p2psap.SessionRemoteClosed:
			case p2psap.SessionEnded:
				p.c.fail(p, err)
				return
			default:
				return
			}
		}
	}
	p.phase, p.began = phaseRunning, p.c.clock.Now()
	if s := p.c.Scenario.Stop; s.At > 0 && s.Rank == p.rank {
		p.c.clock.After(s.At, func() {
			p.worker.Stop(p.now(), s.Why)
			p.touched()
		})
	}
	p.running()
}

// running does the worker's operations until one takes time or has to wait.
func (p *peer) running() {
	now := p.c.clock.Now()
	if now < p.busy {
		p.wake(p.busy)
		return
	}
	if p.waiting {
		p.waiting = false
		p.poll()
	}
	for p.c.fault == nil {
		if p.todo != nil {
			if !p.todo() {
				p.poll() // while it waits for room it takes in what comes
				if !p.todo() {
					return
				}
			}
			p.todo = nil
		}
		op := p.worker.Next(p.now())
		switch op.Kind {
		case solver.OpRelax:
			p.worker.Relax(op)
			p.points += uint64(op.Points)
			p.spend(p.c.Scenario.costAt(p.rank, time.Duration(p.c.clock.Now())).Relax(op.Points))
			p.todo = func() bool { p.poll(); return true }
			return
		case solver.OpSend:
			p.sendFace(op)
		case solver.OpAgree:
			p.sendAgreement(op)
		case solver.OpWait:
			if p.poll() {
				continue // it may have been what the worker waits for
			}
			p.waiting = true
			if op.Until > 0 {
				p.wake(p.began.Add(max(op.Until, p.now()+1)))
			}
			p.settle()
			return
		case solver.OpAdapt:
			p.adapt(op)
		case solver.OpStep:
			p.step(*op.Step)
		case solver.OpFail:
			p.c.fail(p, op.Err)
			return
		case solver.OpDone:
			p.finish()
			return
		}
		if p.busy > now {
			p.wake(p.busy)
			p.settle()
			return
		}
	}
}

func (p *peer) spend(d time.Duration) {
	p.busy = max(p.busy, p.c.clock.Now()).Add(d)
	p.wake(p.busy)
	p.settle()
}

// finish closes the sessions; what has been sent is still accepted.
func (p *peer) finish() {
	p.phase = phaseClosing
	p.countMoves()
	for _, nb := range p.neighbours {
		for _, id := range nb.sessions() {
			p.node.Close(p.c.clock.Now(), id)
		}
	}
	p.settle()
	p.closing()
}

func (p *peer) closing() {
	for _, nb := range p.neighbours {
		for _, id := range nb.sessions() {
			if state, _ := p.node.State(id); state != p2psap.SessionEnded {
				return
			}
		}
	}
	p.phase = phaseClosed
}

// sessionOf names the session that a frame to this peer belongs to, "" if none.
func (p *peer) sessionOf(frame []byte) string {
	if len(frame) < p2psap.HeaderBytes {
		return ""
	}
	id := p2psap.SessionID(binary.BigEndian.Uint32(frame[4:]))
	for _, nb := range p.neighbours {
		switch {
		case id == nb.halo && nb.hasHalo():
			return "halo"
		case id == nb.agree && nb.Agreement > 0:
			return "agree"
		}
	}
	return ""
}
