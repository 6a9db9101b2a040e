package richardson

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Worker is what one peer runs: pure reverse communication. The shell asks Next
// what to do, does it, and tells what arrives by Halo and Agree; between the parts
// of a sweep it may look for arrivals. Not safe for concurrent use.
type Worker struct {
	iterate.Coordination
	config    problem.Config
	faces     []*face // of channels, in the same order
	block     *problem.Discretization
	exec      problem.Executor
	setup     setup
	stepper   *kernel.Sweep // nil until the step is known
	cur, next []float64     // iterate k; where k+1 goes
	spare     []float64     // third array, only after a snapshot
	frozen    []float64     // block of the snapshot in progress or agreed; may be cur
	measured  []float64     // what the last pass read
	pass      pass
	opening   opening
	unread    bool // the pass has yet to read the newest faces

	delta   float64 // the step of stepper
	most    int     // planes that this peer may have; 0: planes do not move
	meter   meter
	moves   int // of cuts
	given   int // planes
	taken   int
	relaxed uint64 // points
}

// NewWorker builds the own block: arrays are allocated here, once (a third one of
// values at the first snapshot of an asynchronous run). It evaluates the problem's
// functions at the box's points and checks what they give.
func NewWorker(c problem.Config) (*Worker, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	w := &Worker{Coordination: iterate.Coordination{Config: problem.Coordination(&c), Tree: problem.TreeOf(c.Partition, c.Rank)}, config: c, exec: c.Executor}
	w.Source = w
	if w.exec == nil {
		w.exec = problem.Sequential{}
	}
	w.Checks = iterate.NewCheckInterval(c.CheckEvery, c.Lag, c.MaxSweeps)
	box := c.Partition.Box(c.Rank)
	l, err := kernel.NewLayout(c.Problem.Dimension, box.Size())
	if err != nil {
		return nil, err
	}
	w.block = &problem.Discretization{Box: box, Layout: l, Exec: w.exec, Allocate: c.Allocate}
	if w.Steps.Of = c.Problem.Steps(); w.Steps.Of > 0 {
		if w.Steps.Before, err = c.Problem.Before(box, c.Initial); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Partition.Neighbours(c.Rank) {
		f := newFace(w.block.Layout, n, c.Scheme.Between(c.Rank, n.Rank))
		w.faces, w.Channels = append(w.faces, f), append(w.Channels, f.Channel)
	}
	w.Halos = w.Channels
	if c.Balance && Balanceable(&c) == nil {
		w.Config.Moves = true
		w.most = MostPlanes(&c, c.Rank)
		if w.meter.least = c.BalanceWindow; w.meter.least <= 0 {
			w.meter.least = defaultWindow
		}
	}
	w.cur = w.config.NewArray(w.block.Layout.Len())
	w.pass.init(w)
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// settle prepares with the step δ that everyone knows by itself, or goes about
// agreeing on one.
func (w *Worker) settle() error {
	if w.block.Operator.Form != kernel.Variable {
		return w.prepare(w.config.Method.StepLength(w.block.Diagonal))
	}
	return w.setup.advance(w)
}

// prepare is called once the step δ is known: it measures the own share of the
// reference residual and sets the starting iterate.
func (w *Worker) prepare(step float64) error {
	if err := w.block.FillReference(w.cur); err != nil {
		return err
	}
	stepper, err := w.block.Sweep(step)
	if err != nil {
		return err
	}
	w.stepper, w.delta = stepper, step
	w.Reference = w.pass.measureNow(w.cur)
	if err := w.block.Problem.CheckReference(&w.Reference); err != nil {
		return err
	}
	values := w.config.Initial
	if w.Steps.Of > 0 {
		values = w.Steps.Before
	}
	if _, err = w.block.Start(w.cur, values); err != nil {
		return err
	}
	w.config.Initial = nil
	if w.next == nil {
		w.next = w.newArray()
	}
	w.block.CopyGhosts(w.next, w.cur)
	if w.spare != nil {
		w.block.CopyGhosts(w.spare, w.cur)
	}
	return nil
}

// newArray is a padded array with the boundary data of the first one.
func (w *Worker) newArray() []float64 {
	a := w.config.NewArray(w.block.Layout.Len())
	w.block.CopyGhosts(a, w.cur)
	return a
}

// Next says what to do now; now is the time since the run's start and must not
// decrease. An OpRelax is repeated until Relax was called for it. After OpDone it
// answers OpDone.
func (w *Worker) Next(now time.Duration) iterate.Op {
	w.Now = now
	w.meter.tick(now)
	for {
		if w.Queued() {
			return w.PopOutbox()
		}
		if w.Fault != nil {
			return iterate.Op{Kind: iterate.OpFail, Err: w.Fault}
		}
		if w.Done {
			return iterate.Op{Kind: iterate.OpDone}
		}
		if op, ok := w.open(); ok {
			return op
		}
		if w.Rule.Over() {
			w.pass.abandon()
			w.conclude()
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
			continue // the gate had something to say; that goes first
		}
		if w.most > 0 && (g == iterate.Sweep || g == iterate.SweepMeasure || g == iterate.Wait) {
			if g != iterate.Wait {
				w.rebalance()
			}
			made, waits := w.handOver(g)
			if made || w.Queued() {
				continue
			}
			if waits {
				return w.Wait(now)
			}
		}
		switch g {
		case iterate.Sweep, iterate.SweepMeasure:
			if !w.Readable() {
				return w.Wait(now)
			}
			w.unread = true
			w.pass.beginSweep(g == iterate.SweepMeasure)
		case iterate.MeasureCurrent:
			if !w.Readable() {
				return w.Wait(now)
			}
			w.unread = true
			w.pass.beginMeasure(w.cur)
		case iterate.MeasureCaptured:
			w.unpackFrozen()
			w.pass.beginMeasure(w.frozen)
		case iterate.Done:
			w.conclude()
		default:
			return w.Wait(now)
		}
	}
}

// Receive takes what the step δ is agreed on by, and what moves planes.
func (w *Worker) Receive(c *iterate.Channel, m *iterate.Message) error {
	if m.Kind == iterate.MsgDiagonal || m.Kind == iterate.MsgStep {
		return w.setup.agree(w, c.Rank, m)
	}
	return w.hearBalance(w.faceOf(c.Rank), m)
}

// Solution writes the agreed block [z][y][x] of the box after OpDone, and the
// newest complete iterate before; of a nonstationary problem the end of the last
// complete step, u(0) if there is none. dst has as many values as the box has points.
func (w *Worker) Solution(dst []float64) {
	defer func() { (-w.config.Units.Scale).Apply(dst) }()
	if w.Steps.Of > 0 {
		copy(dst, w.Steps.Before)
		return
	}
	w.pass.complete()
	src := w.cur
	if w.Done && w.frozen != nil {
		src = w.frozen
	}
	w.block.CopyOut(dst, src)
}

// Outcome tells how the run ended, or how far it has come.
func (w *Worker) Outcome() iterate.Outcome {
	o := w.Coordination.Outcome()
	if o.Moves, o.Given, o.Taken = w.moves, w.given, w.taken; w.moves > 0 {
		o.Work = float64(w.relaxed) / float64(w.block.Layout.Points())
	}
	return o
}

// Box is the worker's own box, as it is now: see Config.Balance.
func (w *Worker) Box() problem.Box { return w.block.Box }

// Links are the peers that share a face, in the partition's order.
func (w *Worker) Links() []iterate.Link { return Method{}.Links(&w.config, w.config.Rank) }

// Neighbours are the peers that share a face, in the partition's order.
func (w *Worker) Neighbours() []problem.Neighbour {
	out := make([]problem.Neighbour, len(w.faces))
	for i, f := range w.faces {
		out[i] = f.to
	}
	return out
}
