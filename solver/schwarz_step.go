package solver

import "fmt"

// begin begins the run of a stationary problem, or the next time step.
func (w *schwarz) begin() error {
	s := &w.steps
	s.at = min(s.at+1, s.of)
	p := w.config.Problem.AtStep(s.at)
	if err := p.validateHead(); err != nil {
		return w.config.inStep(w.steps.at, err)
	}
	if err := w.block.build(p); err != nil {
		return w.config.inStep(w.steps.at, err)
	}
	w.thaw()
	w.iterate, w.sweep = 0, nil
	for _, c := range w.channels {
		c.begin(s.at)
	}
	for _, q := range w.patches {
		q.begin(s.at)
	}
	w.pass.start()
	w.end = newEnding(&w.party)
	if s.of == 0 {
		return w.prepare()
	}
	for _, q := range w.patches {
		w.tellLayers(q)
	}
	return w.config.inStep(w.steps.at, w.gather())
}

// tellLayers tells a peer what the time step starts from at the points that it reads:
// they are part of the source in its overlap, and of iterate 0.
func (w *schwarz) tellLayers(p *patch) {
	m := message{kind: msgLayers, values: make([]byte, 8*p.send.Points())}
	room := w.room()
	w.spread(room, w.steps.before)
	w.ownPart.Pack(m.values, room, p.send)
	w.tell(p.rank, &m)
}

// spread writes a dense array of the own box to a padded one.
func (w *schwarz) spread(dst, src []float64) {
	l := w.ownPart
	for z := range l.N[2] {
		for y := range l.N[1] {
			from := l.Dense(0, y, z)
			copy(dst[l.Index(0, y, z):], src[from:from+l.N[0]])
		}
	}
}

// layersFrom takes what the time step starts from at points of a peer's.
func (w *schwarz) layersFrom(q Rank, m *message) error {
	p := w.patchOf(q)
	if p == nil || w.steps.of == 0 {
		return fmt.Errorf("what a time step starts from, which is of no use here")
	}
	if len(m.values) != 8*p.recv.Points() {
		return fmt.Errorf("%d bytes of what a time step starts from; they must be %d", len(m.values), 8*p.recv.Points())
	}
	if p.past || w.sweep != nil {
		return nil // a duplicate
	}
	p.past = true
	w.layout.Unpack(w.work, m.values, p.recv)
	if err := w.gather(); err != nil {
		w.fault = w.config.inStep(w.steps.at, err)
	}
	return nil
}

// gather goes on once everybody has told what the step starts from.
func (w *schwarz) gather() error {
	for _, p := range w.patches {
		if !p.past {
			return nil
		}
	}
	room := w.room()
	w.spread(room, w.steps.before)
	w.copyOwn(w.work, room)
	l := w.layout
	for z := range l.N[2] {
		for y := range l.N[1] {
			from, to := l.Index(0, y, z), l.Dense(0, y, z)
			copy(w.past[to:to+l.N[0]], w.work[from:from+l.N[0]])
		}
	}
	for i, v := range w.past {
		if !finite(v) {
			return w.block.problem.refuse("a value of %v at point %d of the region %v at the start of the step", v, i, w.ext)
		}
	}
	w.block.remember(w.past, w.config.Problem.Evolution.Step())
	return w.prepare()
}

// prepare measures the own share of the reference residual and sets iterate 0.
func (w *schwarz) prepare() error {
	b := w.block
	if err := b.fillReference(w.work); err != nil {
		return w.config.inStep(w.steps.at, err)
	}
	sweep, err := b.sweep(1) // the step is not used: it only measures
	if err != nil {
		return err
	}
	w.sweep = sweep
	if w.local, err = newLocal(w); err != nil {
		return err
	}
	w.reference = w.pass.measureNow()
	if err := b.problem.checkReference(&w.reference); err != nil {
		return w.config.inStep(w.steps.at, err)
	}
	if w.coarse != nil {
		if err := w.coarse.begin(w); err != nil {
			return w.config.inStep(w.steps.at, err)
		}
	}
	values := w.config.Initial
	switch {
	case w.steps.of > 0:
		_, err = b.start(w.work, w.past)
	case values != nil:
		err = w.startFrom(values)
	default:
		_, err = b.start(w.work, nil)
	}
	if err != nil {
		return w.config.inStep(w.steps.at, err)
	}
	w.config.Initial = nil
	w.cur = w.room()
	w.next = make([]float64, w.ownPart.Len())
	w.takeOwn(w.cur, w.work)
	return nil
}

// startFrom sets iterate 0 to values of the own box, brought into [φ, ψ].
func (w *schwarz) startFrom(values []float64) error {
	if len(values) != w.ownPart.Points() {
		return w.block.problem.refuse("%d starting values for a box of %d points", len(values), w.ownPart.Points())
	}
	var err error
	w.own.each(func(d int, idx [3]int) bool {
		var v float64
		at := w.within(Box{Lo: [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}}).Lo
		v, err = w.block.startValue(values[d], w.layout.Dense(at[0], at[1], at[2]), idx)
		w.work[w.block.index(idx)] = v
		return err == nil
	})
	return err
}

// conclude ends the run or the time step.
func (w *schwarz) conclude() { w.party.conclude(w.dense, w.begin) }
