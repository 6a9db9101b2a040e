package schwarz

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
	w.Iterate, w.sweep = 0, nil
	for _, c := range w.Channels {
		c.Begin(w.Steps.Current)
	}
	for _, q := range w.patches {
		q.begin(w.Steps.Current)
	}
	w.relaxation.start()
	w.Rule = iterate.NewTerminationRule(&w.Coordination)
	if w.Steps.Total == 0 {
		return w.prepare()
	}
	for _, q := range w.patches {
		w.sendLayers(q)
	}
	return w.startWhenComplete()
}

// sendLayers sends a peer the start of the time step at the points that it reads. They enter the source in its
// overlap, and iterate 0.
func (w *peer) sendLayers(p *patch) {
	m := iterate.Message{Kind: iterate.MsgLayers, Values: make([]byte, 8*p.send.Points())}
	room := w.freeBuffer()
	l := w.ownPart
	method.CopyBox(room, l, l.Interior(), w.Steps.Previous, method.DenseLayout(l.N), [3]int{})
	l.Pack(m.Values, room, p.send)
	w.Send(p.Rank, &m)
}

// receiveLayers accepts the start of the time step at points of another peer.
func (w *peer) receiveLayers(q iterate.Rank, m *iterate.Message) error {
	p := w.patchOf(q)
	if p == nil || w.Steps.Total == 0 {
		return fmt.Errorf("unexpected start of a time step")
	}
	if len(m.Values) != 8*p.recv.Points() {
		return fmt.Errorf("start of a time step of %d bytes; want %d", len(m.Values), 8*p.recv.Points())
	}
	if p.hasStepStart || w.sweep != nil {
		return nil // a duplicate
	}
	p.hasStepStart = true
	w.layout.Unpack(w.work, m.Values, p.recv)
	if err := w.startWhenComplete(); err != nil {
		w.Fault = w.config.StepError(w.Steps.Current, err)
	}
	return nil
}

// startWhenComplete starts the step when all peers have sent its start.
func (w *peer) startWhenComplete() error {
	if slices.ContainsFunc(w.patches, func(p *patch) bool { return !p.hasStepStart }) {
		return nil
	}
	own, l := w.ownPart.N, w.layout
	method.CopyBox(w.work, l, w.inside, w.Steps.Previous, method.DenseLayout(own), [3]int{})
	method.CopyBox(w.stepStart, method.DenseLayout(l.N), l.Interior(), w.work, l, [3]int{})
	for i, v := range w.stepStart {
		if !kernel.Finite(v) {
			return w.block.Problem.Errorf("a value of %v at point %d of the region %v at the start of the step",
				v, i, w.ext)
		}
	}
	w.block.AddPrevious(w.stepStart, w.config.Problem.Evolution.Step())
	return w.prepare()
}

// prepare measures the own share of the reference residual and sets iterate 0.
func (w *peer) prepare() error {
	b := w.block
	err := b.FillReference(w.work)
	if err != nil {
		return err
	}
	if w.sweep, err = b.Sweep(1); err != nil { // the step is not used: it only measures
		return err
	}
	if w.local, err = newLocal(w); err != nil {
		return err
	}
	w.Reference = w.relaxation.measureNow()
	if err = b.Problem.CheckReference(&w.Reference); err != nil {
		return err
	}
	if w.coarse != nil {
		if err = w.coarse.begin(w); err != nil {
			return err
		}
	}
	values := w.config.Initial
	switch {
	case w.Steps.Total > 0:
		_, err = b.Start(w.work, w.stepStart)
	case values != nil:
		err = w.startFrom(values)
	default:
		_, err = b.Start(w.work, nil)
	}
	if err != nil {
		return err
	}
	w.config.Initial = nil
	w.cur = w.freeBuffer()
	w.next = w.config.NewArray(w.ownPart.Len())
	w.extractOwn(w.cur, w.work)
	return nil
}

// startFrom sets iterate 0 to values of the own box, projected onto [φ, ψ].
func (w *peer) startFrom(values []float64) error {
	if len(values) != w.ownPart.Points() {
		return w.block.Problem.Errorf("%d starting values for a box of %d points", len(values), w.ownPart.Points())
	}
	for d, idx := range w.own.Each {
		v, err := w.block.StartValue(values[d], w.block.Dense(idx), idx)
		if err != nil {
			return err
		}
		w.work[w.block.Index(idx)] = v
	}
	return nil
}

// finish ends the run or the time step.
func (w *peer) finish() { w.Coordination.Finish(w.dense, w.begin) }
