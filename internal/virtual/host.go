// Package virtual runs one peer in virtual time: the peer's operations go to the sessions of
// its p2psap.Node, and a World supplies time, networks and the cost of the work.
package virtual

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/trace"
)

// Phase is the state of a host. Phases follow each other in this order.
type Phase int

// The phases of a host.
const (
	New Phase = iota
	Connecting
	Opening
	Running
	Closing // it has its verdict; the last transfers are being accepted
	Closed
)

// Host is one peer's shell in virtual time. It does what solver/runner and p2psap/driver do in
// real time, and shares the exchange with them.
type Host struct {
	Rank     iterate.Rank
	Node     *p2psap.Node
	Exchange *exchange.Exchange
	Phase    Phase
	Began    microproto.Instant // when the sessions were open

	world       World
	rails       int                // links of the node
	sessions    []*session         // by place in the node; nil: not of a neighbour
	busy        microproto.Instant // relaxing or sending until then
	relaxing    bool
	waiting     bool // for a session to change, or until due
	relaxations uint64
	points      int  // of the last relaxation
	keeping     bool // a copy of the block is under way
	armed, due  microproto.Instant
	ages        time.Duration // when age has something to do, since Began
	out         []p2psap.Output
}

// Config describes a host.
type Config struct {
	exchange.Config // Name is set by NewHost
	Node            *p2psap.Node
	// Rails is the number of the node's rails.
	Rails int
}

// NewHost returns the shell of a peer.
func NewHost(w World, c Config) *Host {
	c.Name = NameOf
	return &Host{
		Rank: c.Rank, Node: c.Node, Exchange: exchange.New(c.Config), world: w, rails: c.Rails,
		armed: microproto.Never, due: microproto.Never, ages: exchange.Never,
	}
}

// Start connects to the neighbours.
func (h *Host) Start() {
	h.Phase = Connecting
	for _, n := range h.Exchange.Neighbours() {
		h.fail(h.Node.Connect(h.world.Now(), n.Name, n.Name))
	}
	h.Settle()
	h.proceed()
}

// Busy returns when the relaxing thread is free again.
func (h *Host) Busy() microproto.Instant { return h.busy }

// SetBusy keeps the relaxing thread busy until then. Before Busy it does nothing.
func (h *Host) SetBusy(until microproto.Instant) { h.busy = max(h.busy, until) }

// Relaxing reports whether the relaxing thread is at work on a part.
func (h *Host) Relaxing() bool { return h.relaxing }

// Turn must be called at the instants that World.Wake was given.
func (h *Host) Turn() {
	if h.due == h.world.Now() {
		h.due = microproto.Never
		h.proceed()
		h.Settle()
	}
	if h.Phase == Running {
		h.age()
	}
}

// VerdictTime bounds the wait for a verdict after a neighbour has closed its sessions, which it
// does when it knows the verdict or has failed. Sweeps may take minutes.
const VerdictTime = time.Hour

// age fails once a neighbour has left too long ago without a verdict, and wakes the host then.
func (h *Host) age() {
	next, err := h.Exchange.Age(h.since(), VerdictTime)
	h.fail(err)
	if next != h.ages && err == nil {
		h.ages = next
		h.world.Wake(h, h.Began.Add(next))
	}
}

// Due must be called at the instants that World.Alarm was given.
func (h *Host) Due() {
	now := h.world.Now()
	if h.armed != now {
		return
	}
	h.armed = microproto.Never
	h.Node.Advance(now)
	h.Settle()
}

// Touch wakes the host if it waits. It must be called when something outside the node may let the
// peer continue.
func (h *Host) Touch() {
	if h.Phase == Running && h.waiting || h.Phase == Connecting || h.Phase == Opening || h.Phase == Closing {
		h.wake(h.world.Now())
	}
}

// Stored must be called when the copy is stored that World.Keep has sent.
func (h *Host) Stored() {
	h.keeping = false
	h.Touch()
}

// wake schedules the peer's next turn; only the earliest counts.
func (h *Host) wake(at microproto.Instant) {
	at = max(at, h.busy, h.world.Now())
	if at >= h.due && h.due >= h.world.Now() {
		return
	}
	h.due = at
	h.world.Wake(h, at)
}

// proceed continues in the host's phase.
func (h *Host) proceed() {
	switch h.Phase {
	case Connecting:
		h.connecting()
	case Opening:
		h.opening()
	case Running:
		h.running()
	case Closing:
		h.closing()
	}
}

func (h *Host) connecting() {
	for _, n := range h.Exchange.Neighbours() {
		if state, _ := h.Node.Peer(n.Name); state != p2psap.PeerUp {
			return
		}
	}
	for _, n := range h.Exchange.Neighbours() {
		if n.HasHalo() {
			n.Halo = h.open(n, true, n.HaloOptions())
		}
		if n.Agreement > 0 {
			n.Agree = h.open(n, false, n.AgreeOptions())
		}
	}
	h.Phase = Opening
	h.Settle()
	h.opening()
}

func (h *Host) opening() {
	for _, s := range h.sessions {
		if s == nil {
			continue
		}
		switch state, err := h.Node.State(s.id); state {
		case p2psap.SessionOpen, p2psap.SessionRemoteClosed:
		case p2psap.SessionEnded:
			h.fail(err)
			return
		default:
			return
		}
	}
	h.Phase, h.Began = Running, h.world.Now()
	h.world.Opened(h)
	h.running()
}

// since returns the time of the peer's run.
func (h *Host) since() time.Duration { return h.world.Now().Sub(h.Began) }

// running does the peer's operations until one takes time or has to wait.
func (h *Host) running() {
	now := h.world.Now()
	if now < h.busy {
		h.wake(h.busy)
		return
	}
	if h.keeping {
		return
	}
	h.waiting = false
	if h.relaxing {
		h.relaxing = false
		h.Node.Record(now, trace.RelaxEnd, h.relaxations, h.points)
		h.world.Relaxed(h)
		_, err := h.Exchange.Poll(h.since())
		h.fail(err)
	}
	for !h.world.Failed() {
		if h.busy > now {
			h.wake(h.busy)
			h.Settle()
			return
		}
		a, err := h.Exchange.Next(h.since())
		if err != nil {
			h.fail(err)
			return
		}
		if h.act(a) {
			h.Settle()
			return
		}
	}
}

// act does what an action says. It returns true when the thread has nothing more to do now.
func (h *Host) act(a exchange.Action) bool {
	switch a.Kind {
	case exchange.Relax:
		h.relaxing = true
		h.relaxations++
		h.points = a.Op.Points
		h.Node.Record(h.world.Now(), trace.RelaxBegin, h.relaxations, h.points)
		h.busy = max(h.busy, h.world.Now()).Add(h.world.Relax(h, *a.Op))
		h.wake(h.busy)
		return true
	case exchange.Send:
		if d := h.world.Sends(h); d > 0 {
			h.busy = max(h.busy, h.world.Now()).Add(d)
		}
	case exchange.Wait:
		h.waiting = true
		if a.Until > 0 {
			h.wake(h.Began.Add(max(a.Until, h.since()+1)))
		}
		return true
	case exchange.Blocked:
		h.waiting = true
		return true
	case exchange.Step:
		h.world.Stepped(h, a.Op.Step)
	case exchange.Keep:
		h.keeping = !h.world.Keep(h, a.Op)
		h.waiting = h.keeping
		return h.keeping
	case exchange.Done:
		h.finish()
		return true
	}
	return false
}

// finish closes the sessions; what has been sent is still accepted.
func (h *Host) finish() {
	h.Phase = Closing
	h.world.Finished(h)
	h.Exchange.Close()
	for _, s := range h.sessions {
		if s != nil {
			h.Node.Close(h.world.Now(), s.id)
		}
	}
	h.Settle()
	h.closing()
}

func (h *Host) closing() {
	for _, s := range h.sessions {
		if s == nil {
			continue
		}
		if state, _ := h.Node.State(s.id); state != p2psap.SessionEnded {
			return
		}
	}
	h.Phase = Closed
}

func (h *Host) fail(err error) {
	if err != nil {
		h.world.Fail(h, err)
	}
}

// Settle carries out what the node orders, and schedules its next timer.
func (h *Host) Settle() {
	for again := true; again; {
		again = false
		for r := range h.rails {
			h.flush(r)
		}
		h.out = h.Node.Drain(h.out[:0])
		for i := range h.out {
			h.carryOut(&h.out[i])
			again = true
		}
		clear(h.out)
	}
	if d := max(h.Node.Deadline(), h.world.Now()); d < h.armed {
		h.armed = d
		h.world.Alarm(h, d)
	}
}

// flush offers a rail the frames that wait for it.
func (h *Host) flush(r int) {
	for {
		frames, taken := h.Node.Frames(r), 0
		for taken < len(frames) && h.world.Carry(h, r, frames[taken]) {
			taken++
		}
		h.Node.Sent(r, taken)
		if taken < len(frames) || taken == 0 {
			return
		}
	}
}

// carryOut does what the node orders.
func (h *Host) carryOut(o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutControl, p2psap.OutDial, p2psap.OutDisconnect:
		h.world.Control(h, o)
	case p2psap.OutPeerRefused, p2psap.OutPeerLost:
		if h.Phase != Closed {
			h.fail(o.Err)
		}
	case p2psap.OutActivity:
		if i := place(o.Session); i < len(h.sessions) && h.sessions[i] != nil {
			h.Exchange.Touch(h.sessions[i].to, h.sessions[i].halo)
		}
		h.Touch()
	case p2psap.OutAdapted, p2psap.OutPeerClosed:
		h.Exchange.TouchAll()
	case p2psap.OutPeerUp, p2psap.OutOpened, p2psap.OutEnded:
		h.Exchange.TouchAll()
		h.Touch()
	}
}
