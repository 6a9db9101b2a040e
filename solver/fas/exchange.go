package fas

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// The kinds of values, in the order of their tags in a slot.
const (
	kindTau  = iota // right-hand side of the replicated grid at the sender's points (Brandt's τ plus the source)
	kindRing        // values of the solution at the receiver's ring
	kinds
)

// exchange is the exchange with another peer.
type exchange struct {
	tau, ring *iterate.Channel // ring is nil if neither peer owns points of the other's ring
	screen    [kinds]kernel.Screen
	free      bool                 // values of any age may be read, and none need have arrived
	send      []problem.Box        // own points of the other peer's ring
	receive   []problem.Box        // its points of the own ring
	face      bool                 // the first box of either is a layer behind a common face
	coarse    problem.Box          // the other peer's points of the replicated level
	sent      [kinds]time.Duration // when values were sent last
	older     bool                 // repeat the older values next
	news      iterate.Iteration    // least label of a ring that has not been read
	readAt    iterate.Iteration    // step that read the last ring
	travel    iterate.Iteration    // largest lag of a ring of the first steps
	has       [kinds]bool          // values were sent
	values    []byte               // memory for values that arrive in pieces

	// ownLayers are the other peer's points in the own region, theirLayers own points in its region. hasStart reports
	// whether the former have arrived with their values at the start of the time step.
	ownLayers, theirLayers problem.Box
	hasStart               bool
}

// newExchange returns the exchange of rank r with rank q.
func newExchange(g *plan, s iterate.Scheme, r, q iterate.Rank) *exchange {
	x := &exchange{coarse: g.ownCoarse(g.partition.Box(q)), free: !s.Lockstep() && s.Admit(farBehind, 0, q)}
	own := g.ownCoarse(g.partition.Box(r))
	x.tau = iterate.NewChannel(q, g.tauBytes(max(x.coarse.Points(), own.Points())), s)
	x.receive, x.face = g.ringBoxes(r, q)
	x.send, _ = g.ringBoxes(q, r)
	x.ownLayers, x.theirLayers = g.layers(r, q), g.layers(q, r)
	if bytes := max(bytesOf(x.receive), bytesOf(x.send)); bytes > 0 {
		x.ring = iterate.NewChannel(q, bytes, s)
	}
	return x
}

// farBehind is an age that only schemes without a bound admit.
const farBehind = 1 << 30

// channels returns the channels by kind.
func (x *exchange) channels() []*iterate.Channel {
	if x.ring == nil {
		return []*iterate.Channel{x.tau}
	}
	return []*iterate.Channel{x.tau, x.ring}
}

// readable reports whether values of a kind may be read by step k.
func (x *exchange) readable(kind int, k iterate.Iteration) bool {
	c := x.channels()
	return kind >= len(c) || x.free || c[kind].Pick(k) != nil
}

func (w *peer) exchangeWith(q iterate.Rank) *exchange {
	if i := slices.IndexFunc(w.exchanges, func(x *exchange) bool { return x.tau.Rank == q }); i >= 0 {
		return w.exchanges[i]
	}
	return nil
}

// Halo records that the slot of (q, tag) holds values (see iterate.Peer).
func (w *peer) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	c, s, err := w.HaloFrom(q, label, data, false)
	if c == nil {
		return err
	}
	x := w.exchangeWith(q)
	all := x.channels()
	kind := tag % uint32(len(all))
	if err := x.screen[kind].Check(data...); err != nil {
		return err
	}
	if err := all[kind].Store(tag/uint32(len(all)), s, w.Steps.Parity); err != nil || kind != kindTau {
		return err
	}
	return w.plan.checkTau(iterate.Contiguous(data, &x.values))
}

// sendOp returns the operation that sends values of a kind with a label.
func (w *peer) sendOp(now time.Duration, x *exchange, kind int, label iterate.Iteration) iterate.Op {
	all := x.channels()
	op := w.SendOp(now, all[kind], label)
	op.Tag = op.Tag*uint32(len(all)) + uint32(kind)
	x.sent[kind], x.has[kind] = now, true
	return op
}

// wait returns the operation of a peer that can do nothing before an arrival. It repeats what sessions may have lost.
func (w *peer) wait(now time.Duration) iterate.Op {
	until := time.Duration(0)
	for _, x := range w.exchanges {
		for kind, c := range x.channels() {
			if !c.Scheme.Asynchronous() || !x.has[kind] {
				continue
			}
			if due := x.sent[kind] + w.Config.Repeat; now < due {
				if until == 0 || due < until {
					until = due
				}
				continue
			}
			label := w.newest(kind)
			if x.older && c.Scheme.Lockstep() && label > 0 {
				label--
			}
			if kind == len(x.channels())-1 {
				x.older = !x.older
			}
			return w.sendOp(now, x, kind, label)
		}
	}
	return iterate.Op{Kind: iterate.OpWait, Until: until}
}

// newest returns the label of the newest values of a kind.
func (w *peer) newest(kind int) iterate.Iteration {
	if kind == kindRing || w.step.stage.restricted() || w.Iterate == 0 {
		return w.Iterate
	}
	return w.Iterate - 1
}

// Pack writes the op.Bytes bytes of op, an OpSend, to dst.
func (w *peer) Pack(op iterate.Op, dst []byte) {
	x := w.exchangeWith(op.To)
	if x == nil || op.Kind != iterate.OpSend {
		return
	}
	label := iterate.LabelIterate(op.Label)
	if op.Tag%uint32(len(x.channels())) == kindTau {
		w.plan.putTau(dst, w.tau[label%2])
		return
	}
	values := w.cur
	if label != w.Iterate {
		values = w.next
	}
	for _, b := range x.send {
		dst = dst[w.ownPart.Pack(dst, values, b.From(w.own.Lo)):]
	}
	clear(dst)
}

// readRings copies new values of the ring to level 0. Older values have been corrected since they were read, and are kept.
// It returns for how many steps the first values of the farthest peer travelled at most, and for how many some peer has sent
// none.
// Later values of a peer that is slower lag behind more and more and tell nothing about the way.
func (w *peer) readRings() (travel, silent int) {
	for _, x := range w.exchanges {
		if x.ring == nil {
			continue
		}
		if s := x.ring.Pick(w.Iterate); s != nil && s.Label >= x.news {
			w.unpackRing(x, w.grids.grids[0].Values, false)
			if x.news == 0 || w.Iterate < guardWindow {
				x.travel = max(x.travel, w.Iterate-s.Label)
			}
			x.news, x.readAt = s.Label+1, w.Iterate
		}
		if silent = max(silent, int(w.Iterate-x.readAt)); x.news == 0 {
			travel = max(travel, int(w.Iterate))
		}
		travel = max(travel, int(x.travel))
	}
	return travel, silent
}

// unpackRing copies the newest values of a peer to dst, an array of level 0: those of its ring, or those behind the
// common face.
func (w *peer) unpackRing(x *exchange, dst []float64, face bool) {
	s := x.ring.Pick(w.Iterate)
	if s == nil {
		return
	}
	data := iterate.Contiguous(s.Data, &x.values)
	for i, b := range x.receive {
		if (i == 0 && x.face) == face {
			w.layout.Unpack(dst, data, b.From(w.region.Lo))
		}
		data = data[8*b.Points():]
	}
}

// readTaus copies the newest right-hand sides to the replicated level.
func (w *peer) readTaus() {
	r := &w.grids.coarse
	for _, x := range w.exchanges {
		s := x.tau.Pick(w.Iterate)
		if s == nil || x.coarse.Empty() {
			continue
		}
		data := iterate.Contiguous(s.Data, &x.values)
		e := int(tauExponent(data))
		data = data[tauHeader:]
		r.eachRow(x.coarse, func(row []float64) { w.plan.readTau(row, &data, e) })
	}
}

// keepTau keeps the right-hand side at the own points, as that of step label.
func (w *peer) keepTau(label iterate.Iteration) {
	tau := w.tau[label%2]
	w.grids.coarse.eachRow(w.ownCoarse, func(row []float64) { tau = tau[copy(tau, row):] })
}
