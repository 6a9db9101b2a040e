package fas

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// begin begins the run of a stationary problem, or the next time step.
func (w *peer) begin() error {
	s := &w.Steps
	s.Current = min(s.Current+1, s.Total)
	return w.config.StepError(s.Current, w.beginStep(w.config.Problem.AtStep(s.Current)))
}

func (w *peer) beginStep(p *problem.Problem) error {
	if err := p.ValidateStatement(); err != nil {
		return err
	}
	if err := w.block.Build(p); err != nil {
		return err
	}
	w.Release()
	w.Iterate, w.measure = 0, nil
	w.guard = guard{trips: w.guard.trips}
	for _, c := range w.Channels {
		c.Begin(w.Steps.Current)
	}
	for _, x := range w.exchanges {
		x.begin(w.Steps.Current)
	}
	w.Rule = iterate.NewTerminationRule(&w.Coordination)
	if w.Steps.Total == 0 {
		return w.prepare()
	}
	for _, x := range w.exchanges {
		w.sendLayers(x)
	}
	return w.startWhenComplete()
}

// begin discards the values of the previous step.
func (x *exchange) begin(step int) {
	for _, c := range x.channels() {
		c.Begin(step)
	}
	x.news, x.readAt, x.travel = 0, 0, 0
	x.older, x.has, x.hasStart = false, [kinds]bool{}, false
}

// layers returns the points of the region of reader that sender owns. At the start of a time step, its values enter the
// source there.
func (g *plan) layers(reader, sender iterate.Rank) problem.Box {
	p, err := g.part(g.partition.Box(reader), 0)
	if err != nil {
		return problem.Box{}
	}
	b, theirs := p.box(), g.partition.Box(sender)
	for a := range 3 {
		b.Lo[a], b.Hi[a] = max(b.Lo[a], theirs.Lo[a]), min(b.Hi[a], theirs.Hi[a])
	}
	return b
}

// sendLayers sends another peer the start of the time step at the points of its region.
func (w *peer) sendLayers(x *exchange) {
	if x.theirLayers.Empty() {
		return
	}
	m := iterate.Message{Kind: iterate.MsgLayers, Values: make([]byte, 8*x.theirLayers.Points())}
	room, l := w.freeBuffer(), w.ownPart
	method.CopyBox(room, l, l.Interior(), w.Steps.Previous, method.DenseLayout(l.N), [3]int{})
	l.Pack(m.Values, room, x.theirLayers.From(w.own.Lo))
	w.Send(x.tau.Rank, &m)
}

// receiveLayers accepts the start of the time step at points of another peer.
func (w *peer) receiveLayers(q iterate.Rank, m *iterate.Message) error {
	x := w.exchangeWith(q)
	if x == nil || w.Steps.Total == 0 || x.ownLayers.Empty() {
		return fmt.Errorf("unexpected start of a time step")
	}
	if n := 8 * x.ownLayers.Points(); len(m.Values) != n {
		return fmt.Errorf("start of a time step of %d bytes; want %d", len(m.Values), n)
	}
	if x.hasStart || w.measure != nil {
		return nil // a duplicate
	}
	x.hasStart = true
	w.layout.Unpack(w.work, m.Values, x.ownLayers.From(w.region.Lo))
	if err := w.startWhenComplete(); err != nil {
		w.Fault = w.config.StepError(w.Steps.Current, err)
	}
	return nil
}

// startWhenComplete starts the step when all peers have sent its start.
func (w *peer) startWhenComplete() error {
	if slices.ContainsFunc(w.exchanges, func(x *exchange) bool { return !x.hasStart && !x.ownLayers.Empty() }) {
		return nil
	}
	l := w.layout
	method.CopyBox(w.work, l, w.inside, w.Steps.Previous, method.DenseLayout(w.own.Size()), [3]int{})
	method.CopyBox(w.stepStart, method.DenseLayout(l.N), l.Interior(), w.work, l, [3]int{})
	for i, v := range w.stepStart {
		if !kernel.Finite(v) {
			return w.block.Problem.Errorf("a value of %v at point %d of the region %v at the start of the step", v, i,
				w.region)
		}
	}
	w.block.AddPrevious(w.stepStart, w.config.Problem.Evolution.Step())
	return w.prepare()
}

// prepare makes the grids and measures the own share of the residual of the
// reference vector.
func (w *peer) prepare() error {
	if err := w.makeGrids(); err != nil {
		return err
	}
	if err := w.block.FillReference(w.work); err != nil {
		return err
	}
	var err error
	if w.measure, err = w.block.Sweep(1); err != nil { // the step is not used: it only measures
		return err
	}
	w.step.init(w)
	w.Reference = w.squares()
	return w.block.Problem.CheckReference(&w.Reference)
}

// makeGrids makes the grids of a step. The replicated level keeps the values and the right-hand side that the last step
// ended with.
func (w *peer) makeGrids() (err error) {
	var values, source []float64
	if w.grids != nil {
		values, source = slices.Clone(w.grids.coarse.values), slices.Clone(w.grids.coarse.source)
	}
	w.arrays.used = 0
	w.grids, err = newLevels(w.plan, w.own, w.block,
		method.Options{Executor: w.config.Executor, Cycle: w.config.Method.Cycle, Allocate: w.arrays.take})
	if err != nil || w.Steps.Total == 0 {
		return err
	}
	r := &w.grids.coarse
	if values == nil {
		return r.startSteps(w.plan, w.config.Problem)
	}
	copy(r.values, values)
	copy(r.source, source)
	return r.setBoundary()
}

// arrays are those of the grids, reused from step to step.
type arrays struct {
	allocate func(n int) []float64
	all      [][]float64
	used     int
}

// take returns an array of n values 0.
func (a *arrays) take(n int) []float64 {
	if a.used == len(a.all) {
		a.all = append(a.all, nil)
	}
	out := &a.all[a.used]
	if a.used++; len(*out) != n {
		*out = a.allocate(n)
	}
	clear(*out)
	return *out
}

// startSteps sets the values to those at the start of an evolution, and the right-hand side to that of the first step
// without what finer grids would add to it.
func (r *replicated) startSteps(g *plan, p *problem.Problem) error {
	e := p.Evolution
	first := p.AtStep(0)
	b := problem.Box{Hi: r.layout.N}
	dense := make([]float64, r.layout.Points())
	err := g.means(p, g.depth, b, func(d int, weight float64, q problem.Point) error {
		v := 0.0
		if e.Initial != nil {
			v = e.Initial(q)
		}
		phi, psi := first.Obstacles(q)
		dense[d] += float64(weight * problem.Clamp(v, phi, psi))
		return nil
	})
	if err != nil {
		return err
	}
	for d, v := range dense {
		r.source[d] += v / e.Step()
	}
	method.CopyBox(r.values, r.layout, r.layout.Interior(), dense, method.DenseLayout(r.layout.N), [3]int{})
	return r.setBoundary()
}

// setBoundary sets the ghosts to the boundary data.
func (r *replicated) setBoundary() error {
	return r.problem.CoarseBoundary(r.layout.N, r.layout, r.values)
}

// startFrom sets level 0 to values of the region, dense, and the boundary of all levels.
func (v *levels) startFrom(values []float64, block *problem.Discretization) error {
	v.copyWhole(v.grids[v.plan.depth].Values)
	for l := range v.plan.depth {
		g := v.grids[l]
		if err := block.Problem.CoarseBoundaryIn(g.Part.Global, v.parts[l].box(), g.Part.Layout, g.Values); err != nil {
			return err
		}
	}
	_, err := block.Start(v.grids[0].Values, values)
	return err
}
