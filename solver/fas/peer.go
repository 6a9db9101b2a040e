package fas

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// peer is a peer of the method. In lockstep iterate k+1 is a function of the iterates k of all peers.
type peer struct {
	iterate.Coordination
	config    problem.Config
	own       problem.Box
	region    problem.Box // with its ring
	ownCoarse problem.Box // own points of the replicated level
	layout    kernel.Layout
	ownPart   kernel.Layout
	inside    kernel.Box // own box in the region
	block     *problem.Discretization
	plan      *plan
	grids     *levels
	arrays    arrays
	measure   *kernel.Sweep       // nil until the start of the time step is known
	faces     []problem.Neighbour // of Channels, in the same order
	exchanges []*exchange
	step      step
	guard     guard

	work      []float64    // of the region: the values being measured
	cur, next []float64    // of the own box: iterate k, and the one before
	tau       [2][]float64 // right-hand side at the own points, of the newest two steps
	spare     []float64
	stepStart []float64 // of the region, dense: the start of the time step
	captured  []float64 // of the current or agreed snapshot; may be cur
}

// newPeer creates a peer and allocates its arrays.
func newPeer(c problem.Config) (problem.Peer, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := (Method{}).Check(&c); err != nil {
		return nil, err
	}
	g, err := newPlan(&c)
	if err != nil {
		return nil, err
	}
	w := &peer{
		Coordination: iterate.Coordination{Config: problem.Coordination(&c), Tree: problem.TreeOf(c.Partition, c.Rank)},
		config:       c, own: c.Partition.Box(c.Rank), plan: g, arrays: arrays{allocate: c.NewArray},
	}
	w.Source = w
	w.EarlyStart = true
	w.Checks = iterate.NewCheckInterval(max(1, c.CheckEvery), 1, c.MaxSweeps)
	if err := w.place(); err != nil {
		return nil, err
	}
	if w.Steps, err = c.TimeSteps(w.own); err != nil {
		return nil, err
	}
	if w.Steps.Total > 0 {
		w.stepStart, w.config.Initial = c.NewArray(w.layout.Points()), nil
	}
	w.makeExchanges(g)
	w.work = c.NewArray(w.layout.Len())
	w.cur, w.next = c.NewArray(w.ownPart.Len()), c.NewArray(w.ownPart.Len())
	for i := range w.tau {
		w.tau[i] = c.NewArray(w.ownCoarse.Points())
	}
	if c.MayDiverge() {
		w.Best.Begin(w.ownPart.Points(), c.NewArray)
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// place computes the region.
func (w *peer) place() error {
	c := &w.config
	p, err := w.plan.part(w.own, 0)
	if err != nil {
		return err
	}
	w.region, w.layout = p.box(), p.Layout
	w.inside, w.ownCoarse = w.own.From(w.region.Lo), w.plan.ownCoarse(w.own)
	w.block = &problem.Discretization{Box: w.region, Layout: w.layout, Executor: c.Executor, Allocate: c.Allocate}
	w.ownPart, err = kernel.NewLayout(c.Problem.Dimension, w.own.Size())
	return err
}

func (w *peer) makeExchanges(g *plan) {
	c := &w.config
	w.faces = c.Partition.Neighbours(c.Rank)
	for _, n := range w.faces {
		w.Channels = append(w.Channels, iterate.NewChannel(n.Rank, n.FaceBytes, c.Scheme.Between(c.Rank, n.Rank)))
	}
	for q := range iterate.Rank(c.Partition.Peers()) {
		if q != c.Rank {
			x := newExchange(g, c.Scheme.Between(c.Rank, q), c.Rank, q)
			w.exchanges, w.Halos = append(w.exchanges, x), append(w.Halos, x.tau)
			if w.Steps.Total > 0 && w.ChannelOf(q) == nil && !(x.ownLayers.Empty() && x.theirLayers.Empty()) {
				w.AgreementOnly = append(w.AgreementOnly, &iterate.Channel{Rank: q})
			}
		}
	}
}

// squares measures the squared residual of the working array.
func (w *peer) squares() kernel.Sum {
	w.config.Executor.For(w.step.chunks, w.step.run)
	return method.TakeSquares(w.step.norms)
}

// start computes iterate 0.
func (w *peer) start() error {
	if w.Steps.Total > 0 {
		err := w.grids.startFrom(w.stepStart, w.block)
		w.extract(w.cur)
		return err
	}
	if err := w.grids.start(); err != nil {
		return err
	}
	u := w.grids.grids[0].Values
	if values := w.config.Initial; values != nil {
		if len(values) != w.ownPart.Points() {
			return w.block.Problem.Errorf("%d starting values for a box of %d points", len(values), w.ownPart.Points())
		}
		for d, idx := range w.own.Each {
			v, err := w.block.StartValue(values[d], w.block.Dense(idx), idx)
			if err != nil {
				return err
			}
			u[w.block.Index(idx)] = v
		}
		w.config.Initial = nil
	}
	w.extract(w.cur)
	return nil
}

// extract copies the own points of level 0 to an array of the own box.
func (w *peer) extract(dst []float64) {
	method.CopyBox(dst, w.ownPart, w.ownPart.Interior(), w.grids.grids[0].Values, w.layout, w.inside.Lo)
}

// complete makes the values of level 0 the next iterate.
func (w *peer) complete() {
	room := w.freeBuffer()
	w.extract(room)
	w.cur, w.next = room, w.cur
	w.Iterate++
}

// freeBuffer returns an array of the own box for the next iterate.
func (w *peer) freeBuffer() []float64 {
	switch {
	case !problem.SameArray(w.next, w.captured):
		return w.next
	case w.spare != nil:
		out := w.spare
		w.spare = nil
		return out
	}
	return w.config.NewArray(w.ownPart.Len())
}

// readable reports whether a step may read values of a kind of all peers.
func (w *peer) readable(kind int) bool {
	return !slices.ContainsFunc(w.exchanges, func(x *exchange) bool { return !x.readable(kind, w.Iterate) })
}

// Next returns the next operation (see iterate.Peer).
func (w *peer) Next(now time.Duration) iterate.Op {
	w.Now = now
	for {
		if op, ok := w.Pending(); ok {
			return op
		}
		if w.measure == nil {
			return iterate.Op{Kind: iterate.OpWait} // for the start of the time step, which is sent reliably
		}
		if w.Rule.Over() {
			w.step.stage = stageIdle
			w.Coordination.Finish(w.dense, w.begin)
			continue
		}
		if op, ok := w.step.next(now); ok {
			return op
		}
		g := w.Rule.Next()
		if w.Queued() {
			continue // send the messages of the termination rule first
		}
		switch g {
		case iterate.ActionSweep, iterate.ActionSweepMeasure, iterate.ActionMeasure:
			if !w.readable(kindRing) {
				return w.wait(now)
			}
			if g != iterate.ActionSweep {
				w.offer()
			}
			w.step.begin(g)
		case iterate.ActionMeasureCaptured:
			w.assembleCaptured()
			w.step.beginCaptured()
		case iterate.ActionDone:
			w.Coordination.Finish(w.dense, w.begin)
		default:
			return w.wait(now)
		}
	}
}

// assemble combines the current iterate with the newest values behind its faces.
func (w *peer) assemble() {
	copy(w.work, w.grids.grids[0].Values)
	method.CopyBox(w.work, w.layout, w.inside, w.cur, w.ownPart, [3]int{})
	for _, x := range w.exchanges {
		if x.face {
			w.unpackRing(x, w.work, true)
		}
	}
}

// assembleCaptured combines the captured block and the captured faces of the neighbours.
func (w *peer) assembleCaptured() {
	copy(w.work, w.grids.grids[0].Values) // the boundary data
	method.CopyBox(w.work, w.layout, w.inside, w.captured, w.ownPart, [3]int{})
	for i, f := range w.faces {
		b := w.inside
		if a := f.Axis; f.Side < 0 {
			b.Lo[a], b.Hi[a] = b.Lo[a]-1, b.Lo[a]
		} else {
			b.Lo[a], b.Hi[a] = b.Hi[a], b.Hi[a]+1
		}
		w.layout.Unpack(w.work, w.Channels[i].AgreedValues(), b)
	}
}

// Capture keeps the newest complete iterate as the block of a snapshot, without copying.
func (w *peer) Capture() {
	w.Release()
	w.captured, w.CapturedAt = w.cur, w.Iterate
}

// Release releases the captured block.
func (w *peer) Release() {
	if w.captured != nil && !problem.SameArray(w.captured, w.cur) && !problem.SameArray(w.captured, w.next) {
		w.spare = w.captured
	}
	w.captured = nil
}

// Magnitudes returns the magnitudes of the assembled values.
func (w *peer) Magnitudes() kernel.Sum { return w.block.Magnitudes(w.work, w.inside) }

// PackCaptured writes the captured values of face i to dst.
func (w *peer) PackCaptured(i int, dst []byte) {
	w.ownPart.Pack(dst, w.captured, w.faces[i].Layer(w.ownPart))
}

// Receive accepts the start of a time step. All other messages of the method are halos.
func (w *peer) Receive(c *iterate.Channel, m *iterate.Message) error {
	if m.Kind == iterate.MsgLayers {
		return w.receiveLayers(c.Rank, m)
	}
	return fmt.Errorf("unexpected kind %d", m.Kind)
}

// Solution writes the agreed block after OpDone, and the newest complete iterate before. For a nonstationary problem it
// writes the end of the last complete step (see iterate.Peer).
func (w *peer) Solution(dst []float64) {
	switch {
	case w.Steps.Total > 0:
		copy(dst, w.Steps.Previous)
	case w.AnswersBest():
		copy(dst, w.Best.Values)
	default:
		w.dense(dst)
	}
	(-w.config.Units.Scale).Apply(dst)
}

// result returns the accepted block and its iterate, or the newest one. In lockstep, iterate k is accepted while k+1 is
// computed.
func (w *peer) result() ([]float64, iterate.Iteration) {
	if k, ok := w.Rule.Accepted(); ok && w.Iterate == k+1 {
		return w.next, k
	}
	if w.captured != nil && w.Rule.Over() {
		return w.captured, w.CapturedAt
	}
	return w.cur, w.Iterate
}

// Outcome returns the result of the run or its state so far.
func (w *peer) Outcome() iterate.Outcome {
	o := w.Coordination.Outcome()
	if !w.AnswersBest() {
		_, o.Iterate = w.result()
	}
	o.Work = w.Spent
	return o
}

// dense writes the agreed or the newest block to a dense array.
func (w *peer) dense(dst []float64) {
	src, _ := w.result()
	w.copyDense(dst, src)
}

// offer keeps the current iterate, whose residual will be measured, where it may become the answer.
func (w *peer) offer() {
	if a := w.Offer(); a != nil {
		w.copyDense(a, w.cur)
	}
}

func (w *peer) copyDense(dst, src []float64) {
	l := w.ownPart
	method.CopyBox(dst, method.DenseLayout(l.N), l.Interior(), src, l, [3]int{})
}

// Values writes a part of the newest iterate; see problem.Peer.
func (w *peer) Values(dst []float64, part problem.Box) {
	src, _ := w.result()
	l := method.DenseLayout(part.Size())
	method.CopyBox(dst, l, l.Interior(), src, w.ownPart, part.From(w.own.Lo).Lo)
	(-w.config.Units.Scale).Apply(dst[:part.Points()])
}

// Box returns the peer's own box.
func (w *peer) Box() problem.Box { return w.own }

// Links returns the peers that this one exchanges messages with.
func (w *peer) Links() []iterate.Link { return (Method{}).Links(&w.config, w.config.Rank) }

// Describe returns the method's parameters (see problem.Peer).
func (w *peer) Describe() string {
	g := w.plan
	n := g.hierarchy.Grids[g.depth]
	out := fmt.Sprintf("grids %s, replicated from %d points on", &g.hierarchy, n[0]*n[1]*n[2])
	if w.guard.trips > 0 {
		out += fmt.Sprintf("; corrections suspended %d times at rank %d, because the residual did not fall",
			w.guard.trips, w.Config.Rank)
	}
	return out
}
