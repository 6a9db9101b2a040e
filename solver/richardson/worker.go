package richardson

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// worker is the iterate.Peer of the method. Between the parts of a sweep its caller may pass in arrivals.
type worker struct {
	iterate.Coordination
	config        problem.Config
	faces         []*face // of channels, in the same order
	block         *problem.Discretization
	exec          problem.Executor
	setup         stepAgreement
	stepper       *kernel.Sweep // nil until the step is known
	cur, next     []float64     // iterate k; where k+1 goes
	spare         []float64     // third array, only after a snapshot
	captured      []float64     // block of the snapshot in progress or agreed; may be cur
	measured      []float64     // what the last pass read
	pass          pass
	opening       opening
	ghostsPending bool // the pass has not read the newest faces yet

	stepLength     float64 // the step of stepper
	maxPlanes      int     // planes that this peer may have; 0: planes do not move
	speed          speedSampler
	moves          int // of cuts
	planesSent     int
	planesReceived int
	relaxedPoints  uint64
}

// newWorker returns a worker. It allocates all arrays but a third array of values, which the first snapshot of an
// asynchronous run needs. It evaluates the functions of the problem at the points of the box and checks the
// results.
func newWorker(c problem.Config) (*worker, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	w := &worker{
		Coordination: iterate.Coordination{Config: problem.Coordination(&c), Tree: problem.TreeOf(c.Partition, c.Rank)},
		config:       c,
		exec:         c.Executor,
	}
	w.Source = w
	w.Checks = iterate.NewCheckInterval(c.CheckEvery, c.Lag, c.MaxSweeps)
	box := c.Partition.Box(c.Rank)
	l, err := kernel.NewLayout(c.Problem.Dimension, box.Size())
	if err != nil {
		return nil, err
	}
	w.block = &problem.Discretization{Box: box, Layout: l, Executor: w.exec, Allocate: c.Allocate}
	if w.Steps, err = c.TimeSteps(box); err != nil {
		return nil, err
	}
	for _, n := range c.Partition.Neighbours(c.Rank) {
		f := newFace(w.block.Layout, n, c.Scheme.Between(c.Rank, n.Rank))
		w.faces, w.Channels = append(w.faces, f), append(w.Channels, f.Channel)
	}
	w.Halos = w.Channels
	if c.Balance && Balanceable(&c) == nil {
		w.Config.Moves = true
		w.maxPlanes = MostPlanes(&c, c.Rank)
		if w.speed.minWindow = c.BalanceWindow; w.speed.minWindow <= 0 {
			w.speed.minWindow = defaultWindow
		}
	}
	w.cur = w.config.NewArray(w.block.Layout.Len())
	w.pass.init(w)
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// agreeStepLength computes the step length δ if the coefficients are constant. Otherwise it begins the reduction
// that determines it.
func (w *worker) agreeStepLength() error {
	if w.block.Operator.Form != kernel.Variable {
		return w.prepare(w.config.Method.StepLength(w.block.Diagonal))
	}
	return w.setup.advance(w)
}

// prepare is called once the step length δ is known. It measures this peer's share of the reference residual and
// sets the starting iterate.
func (w *worker) prepare(step float64) error {
	if err := w.block.FillReference(w.cur); err != nil {
		return err
	}
	stepper, err := w.block.Sweep(step)
	if err != nil {
		return err
	}
	w.stepper, w.stepLength = stepper, step
	w.Reference = w.pass.measureNow(w.cur)
	if err := w.block.Problem.CheckReference(&w.Reference); err != nil {
		return err
	}
	values := w.config.Initial
	if w.Steps.Total > 0 {
		values = w.Steps.Previous
	}
	if _, err = w.block.Start(w.cur, values); err != nil {
		return err
	}
	w.config.Initial = nil
	if w.config.MayDiverge() {
		w.Best.Begin(w.block.Layout.Points(), w.config.NewArray)
	}
	if w.next == nil {
		w.next = w.newArray()
	}
	w.block.CopyGhosts(w.next, w.cur)
	if w.spare != nil {
		w.block.CopyGhosts(w.spare, w.cur)
	}
	return nil
}

// newArray returns a padded array with the boundary data of the current iterate.
func (w *worker) newArray() []float64 {
	a := w.config.NewArray(w.block.Layout.Len())
	w.block.CopyGhosts(a, w.cur)
	return a
}

// Next returns the next operation; see iterate.Peer.
func (w *worker) Next(now time.Duration) iterate.Op {
	w.Now = now
	w.speed.observe(now)
	for {
		if op, ok := w.Pending(); ok {
			return op
		}
		if op, ok := w.open(); ok {
			return op
		}
		if w.Rule.Over() {
			w.pass.abandon()
			w.finish()
			continue
		}
		if op, ok := w.pass.next(now); ok {
			return op
		}
		if w.stepper == nil {
			return iterate.Op{Kind: iterate.OpWait}
		}
		g := w.Rule.Next()
		if w.Queued() {
			continue // messages of the rule precede the action
		}
		sweeps := g == iterate.ActionSweep || g == iterate.ActionSweepMeasure
		if w.maxPlanes > 0 && (sweeps || g == iterate.ActionWait) {
			if sweeps {
				w.rebalance()
			}
			made, waits := w.migrate(g)
			if made || w.Queued() {
				continue
			}
			if waits {
				return w.Wait(now)
			}
		}
		if sweeps || g == iterate.ActionMeasure {
			if !w.Readable() {
				return w.Wait(now)
			}
			w.ghostsPending = true
		}
		switch g {
		case iterate.ActionSweep, iterate.ActionSweepMeasure:
			if g == iterate.ActionSweepMeasure {
				w.offer()
			}
			w.pass.beginSweep(g == iterate.ActionSweepMeasure)
		case iterate.ActionMeasure:
			w.offer()
			w.pass.beginMeasure(w.cur)
		case iterate.ActionMeasureCaptured:
			w.unpackCaptured()
			w.pass.beginMeasure(w.captured)
		case iterate.ActionDone:
			w.finish()
		default:
			return w.Wait(now)
		}
	}
}

// offer keeps the current iterate, whose residual will be measured, where it may become the answer.
func (w *worker) offer() {
	if a := w.Offer(); a != nil {
		w.block.CopyOut(a, w.cur)
	}
}

// Receive handles the messages of the step length and of migrations.
func (w *worker) Receive(c *iterate.Channel, m *iterate.Message) error {
	if m.Kind == iterate.MsgDiagonal || m.Kind == iterate.MsgStep {
		return w.setup.receive(w, c.Rank, m)
	}
	return w.receiveBalance(w.faceOf(c.Rank), m)
}

// Solution writes the values of the box; see iterate.Peer. In a run with time steps they are those at the end of
// the last complete step, u(0) if there is none.
func (w *worker) Solution(dst []float64) {
	defer func() { (-w.config.Units.Scale).Apply(dst) }()
	if w.Steps.Total > 0 {
		copy(dst, w.Steps.Previous)
		return
	}
	if w.AnswersBest() {
		copy(dst, w.Best.Values)
		return
	}
	w.pass.complete()
	src := w.cur
	if w.Done && w.captured != nil {
		src = w.captured
	}
	w.block.CopyOut(dst, src)
}

// Values writes a part of the newest iterate; see problem.Peer.
func (w *worker) Values(dst []float64, part problem.Box) {
	w.block.CopyPart(dst, w.cur, part)
	(-w.config.Units.Scale).Apply(dst[:part.Points()])
}

// Outcome returns the result of the run; see iterate.Peer.
func (w *worker) Outcome() iterate.Outcome {
	o := w.Coordination.Outcome()
	if o.Moves, o.PlanesSent, o.PlanesReceived = w.moves, w.planesSent, w.planesReceived; w.moves > 0 {
		o.Work = float64(w.relaxedPoints) / float64(w.block.Layout.Points())
	}
	return o
}

// Box returns the current box of the peer, which changes with Config.Balance.
func (w *worker) Box() problem.Box { return w.block.Box }

// Links returns the peers that share a face, in the order of the partition.
func (w *worker) Links() []iterate.Link { return Method{}.Links(&w.config, w.config.Rank) }
