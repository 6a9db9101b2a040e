package solver

// begin begins the run of a stationary problem, or the next time step: it evaluates
// the problem at that time and prepares what the step starts from.
func (w *Worker) begin() error {
	s := &w.steps
	s.at = min(s.at+1, s.of)
	p := w.config.Problem.AtStep(s.at)
	if err := p.validateHead(); err != nil {
		return w.config.inStep(s.at, err)
	}
	if err := w.block.build(p); err != nil {
		return w.config.inStep(s.at, err)
	}
	if s.of > 0 {
		w.block.remember(s.before, w.config.Problem.Evolution.Step())
	}
	w.thaw()
	w.iterate, w.stepper = 0, nil
	for _, f := range w.faces {
		f.begin(s.at)
	}
	w.pass.begin()
	w.opening.begin(w)
	w.end = newEnding(&w.party)
	w.setup = newSetup(len(w.tree.children), w.block.diagonal)
	return w.config.inStep(s.at, w.settle())
}

// begin forgets the faces of the step before; what has come of the new one stays.
func (f *face) begin(step int) {
	f.channel.begin(step)
	f.move, f.told = handover{}, load{}
	f.toldAt = 0
}

// conclude ends the run or the time step.
func (w *Worker) conclude() {
	w.party.conclude(func(dst []float64) {
		answer := w.cur
		if w.frozen != nil {
			answer = w.frozen
		}
		w.block.copyOut(dst, answer)
	}, w.begin)
}

// opening exchanges the first faces of a time step over the halo sessions that are
// asynchronous by the scheme, made synchronous for that while: what a step starts
// from must arrive. Both ends of a session switch once both have come so far, so
// nobody is a step ahead of a neighbour on the other side of it.
type opening struct {
	phase openingPhase
	at    int // faces sent
}

type openingPhase int

const (
	openingDone openingPhase = iota
	openingAdapt
	openingSend
	openingGather
)

func (o *opening) begin(w *Worker) {
	*o = opening{}
	if !w.config.Reconfigure || w.steps.at < 2 {
		return
	}
	for _, f := range w.faces {
		if f.scheme.Asynchronous() {
			o.phase = openingAdapt
		}
	}
}

// open is the next operation of a step's opening, false when there is none.
func (w *Worker) open() (Op, bool) {
	o := &w.opening
	switch o.phase {
	case openingAdapt:
		o.phase = openingSend
		return Op{Kind: OpAdapt}, true
	case openingSend:
		if w.stepper == nil {
			return Op{Kind: OpWait}, true // the step δ is being agreed on
		}
		for o.at < len(w.faces) {
			f := w.faces[o.at]
			if o.at++; f.scheme.Asynchronous() {
				op := w.send(0, f.channel, 0)
				f.sent = false // it arrives; there is nothing to repeat
				return op, true
			}
		}
		o.phase = openingGather
	}
	if o.phase == openingDone {
		return Op{}, false
	}
	for _, f := range w.faces {
		if f.scheme.Asynchronous() && !f.takeOpening() {
			return Op{Kind: OpWait}, true
		}
	}
	o.phase = openingDone
	return Op{Kind: OpAdapt, Asynchronous: true}, true
}
