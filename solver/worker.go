package solver

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Worker is what one peer runs: pure reverse communication. The shell asks Next
// what to do, does it, and tells what arrives by Halo and Agree; between the parts
// of a sweep it may look for arrivals. Not safe for concurrent use.
type Worker struct {
	party
	config    Config
	faces     []*face // of channels, in the same order
	block     *block
	exec      Executor
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
func NewWorker(c Config) (*Worker, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	w := &Worker{party: party{run: run(&c), tree: treeOf(c.Partition, c.Rank)}, config: c, exec: c.Executor}
	w.subject = w
	if w.exec == nil {
		w.exec = Sequential{}
	}
	w.rhythm = newRhythm(c.CheckEvery, c.Lag, c.MaxSweeps)
	box := c.Partition.Box(c.Rank)
	l, err := kernel.NewLayout(c.Problem.Dimension, box.Size())
	if err != nil {
		return nil, err
	}
	w.block = &block{box: box, layout: l, exec: w.exec, allocate: c.allocate}
	if w.steps.of = c.Problem.Steps(); w.steps.of > 0 {
		if w.steps.before, err = c.Problem.before(box, c.Initial); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Partition.Neighbours(c.Rank) {
		f := newFace(w.block.layout, n, Between(c.Scheme, c.Rank, n.Rank))
		w.faces, w.channels = append(w.faces, f), append(w.channels, f.channel)
	}
	w.halos = w.channels
	if c.Balance && Balanceable(&c) == nil {
		w.run.Moves = true
		w.most = MostPlanes(&c, c.Rank)
		if w.meter.least = c.BalanceWindow; w.meter.least <= 0 {
			w.meter.least = defaultWindow
		}
	}
	w.cur = w.config.allocate(w.block.layout.Len())
	w.pass.init(w)
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// settle prepares with the step δ that everyone knows by itself, or goes about
// agreeing on one.
func (w *Worker) settle() error {
	if w.block.operator.Form != kernel.Variable {
		return w.prepare(w.config.Method.step(w.block.diagonal))
	}
	return w.setup.advance(w)
}

// prepare is called once the step δ is known: it measures the own share of the
// reference residual and sets the starting iterate.
func (w *Worker) prepare(step float64) error {
	if err := w.block.fillReference(w.cur); err != nil {
		return err
	}
	stepper, err := w.block.sweep(step)
	if err != nil {
		return err
	}
	w.stepper, w.delta = stepper, step
	w.reference = w.pass.measureNow(w.cur)
	if err := w.block.problem.checkReference(&w.reference); err != nil {
		return err
	}
	values := w.config.Initial
	if w.steps.of > 0 {
		values = w.steps.before
	}
	if _, err = w.block.start(w.cur, values); err != nil {
		return err
	}
	w.config.Initial = nil
	if w.next == nil {
		w.next = w.newArray()
	}
	w.block.copyGhosts(w.next, w.cur)
	if w.spare != nil {
		w.block.copyGhosts(w.spare, w.cur)
	}
	return nil
}

// newArray is a padded array with the boundary data of the first one.
func (w *Worker) newArray() []float64 {
	a := w.config.allocate(w.block.layout.Len())
	w.block.copyGhosts(a, w.cur)
	return a
}

// Next says what to do now; now is the time since the run's start and must not
// decrease. An OpRelax is repeated until Relax was called for it. After OpDone it
// answers OpDone.
func (w *Worker) Next(now time.Duration) Op {
	w.now = now
	w.meter.tick(now)
	for {
		if len(w.outbox) > 0 {
			return w.popOutbox()
		}
		if w.fault != nil {
			return Op{Kind: OpFail, Err: w.fault}
		}
		if w.done {
			return Op{Kind: OpDone}
		}
		if op, ok := w.open(); ok {
			return op
		}
		if w.end.over() {
			w.pass.abandon()
			w.conclude()
			continue
		}
		if op, ok := w.pass.next(now); ok {
			return op
		}
		if w.stepper == nil {
			return Op{Kind: OpWait}
		}
		g := w.end.gate()
		if len(w.outbox) > 0 {
			continue // the gate had something to say; that goes first
		}
		if w.most > 0 && (g == gateSweep || g == gateSweepMeasure || g == gateWait) {
			if g != gateWait {
				w.rebalance()
			}
			made, waits := w.handOver(g)
			if made || len(w.outbox) > 0 {
				continue
			}
			if waits {
				return w.wait(now)
			}
		}
		switch g {
		case gateSweep, gateSweepMeasure:
			if !w.readable() {
				return w.wait(now)
			}
			w.unread = true
			w.pass.beginSweep(g == gateSweepMeasure)
		case gateMeasureCurrent:
			if !w.readable() {
				return w.wait(now)
			}
			w.unread = true
			w.pass.beginMeasure(w.cur)
		case gateMeasureFrozen:
			w.unpackFrozen()
			w.pass.beginMeasure(w.frozen)
		case gateDone:
			w.conclude()
		default:
			return w.wait(now)
		}
	}
}

// hear takes what the step δ is agreed on by, and what moves planes.
func (w *Worker) hear(c *channel, m *message) error {
	if m.kind == msgDiagonal || m.kind == msgStep {
		return w.setup.agree(w, c.rank, m)
	}
	return w.hearBalance(w.faceOf(c.rank), m)
}

// Solution writes the agreed block [z][y][x] of the box after OpDone, and the
// newest complete iterate before; of a nonstationary problem the end of the last
// complete step, u(0) if there is none. dst has as many values as the box has points.
func (w *Worker) Solution(dst []float64) {
	defer func() { (-w.config.units.scale).apply(dst) }()
	if w.steps.of > 0 {
		copy(dst, w.steps.before)
		return
	}
	w.pass.complete()
	src := w.cur
	if w.done && w.frozen != nil {
		src = w.frozen
	}
	w.block.copyOut(dst, src)
}

// Outcome tells how the run ended, or how far it has come.
func (w *Worker) Outcome() Outcome {
	o := w.party.Outcome()
	if o.Moves, o.Given, o.Taken = w.moves, w.given, w.taken; w.moves > 0 {
		o.Work = float64(w.relaxed) / float64(w.block.layout.Points())
	}
	return o
}

// Box is the worker's own box, as it is now: see Config.Balance.
func (w *Worker) Box() Box { return w.block.box }

// Links are the peers that share a face, in the partition's order.
func (w *Worker) Links() []Link { return richardson{}.Links(&w.config, w.config.Rank) }

// Neighbours are the peers that share a face, in the partition's order.
func (w *Worker) Neighbours() []Neighbour {
	out := make([]Neighbour, len(w.faces))
	for i, f := range w.faces {
		out[i] = f.to
	}
	return out
}
