package richardson

import "github.com/p2pdc/p2pdc/solver/iterate"

// begin begins the run of a stationary problem or the next time step: it evaluates the problem at that time and
// prepares the start of the step.
func (w *worker) begin() error {
	s := &w.Steps
	s.Current = min(s.Current+1, s.Total)
	p := w.config.Problem.AtStep(s.Current)
	if err := p.ValidateStatement(); err != nil {
		return w.config.StepError(s.Current, err)
	}
	if err := w.block.Build(p); err != nil {
		return w.config.StepError(s.Current, err)
	}
	if s.Total > 0 {
		w.block.AddPrevious(s.Previous, w.config.Problem.Evolution.Step())
	}
	w.Release()
	w.Iterate, w.stepper = 0, nil
	for _, f := range w.faces {
		f.begin(s.Current)
	}
	w.pass.begin()
	w.opening.begin(w)
	w.Rule = iterate.NewTerminationRule(&w.Coordination)
	w.setup = newStepAgreement(len(w.Tree.Children), w.block.Diagonal)
	return w.config.StepError(s.Current, w.agreeStepLength())
}

// begin discards the halos and migrations of the previous step.
func (f *face) begin(step int) {
	f.Channel.Begin(step)
	f.migration, f.loadSent = migration{}, load{}
	f.loadSentAt = 0
}

// finish ends the run or the time step.
func (w *worker) finish() {
	w.Coordination.Finish(func(dst []float64) {
		answer := w.cur
		if w.captured != nil {
			answer = w.captured
		}
		w.block.CopyOut(dst, answer)
	}, w.begin)
}

// opening exchanges the first halos of a time step. For this exchange the halo sessions that are asynchronous by
// the scheme become synchronous, because these halos must arrive. The two ends of a session change its mode
// together, so neither is a time step ahead of the other.
type opening struct {
	phase openingPhase
	at    int // halos sent
}

type openingPhase int

const (
	openingDone openingPhase = iota
	openingAdapt
	openingSend
	openingGather
)

func (o *opening) begin(w *worker) {
	*o = opening{}
	if !w.config.Reconfigure || w.Steps.Current <= w.config.After+1 {
		return
	}
	for _, f := range w.faces {
		if f.Scheme.Asynchronous() {
			o.phase = openingAdapt
		}
	}
}

// open returns the next operation of the opening of a time step, false if there is none.
func (w *worker) open() (iterate.Op, bool) {
	o := &w.opening
	switch o.phase {
	case openingAdapt:
		o.phase = openingSend
		return iterate.Op{Kind: iterate.OpAdapt}, true
	case openingSend:
		if w.stepper == nil {
			return iterate.Op{Kind: iterate.OpWait}, true // for the step length δ
		}
		for o.at < len(w.faces) {
			f := w.faces[o.at]
			if o.at++; f.Scheme.Asynchronous() {
				op := w.SendOp(0, f.Channel, 0)
				f.Sent = false // the session is reliable: nothing has to be repeated
				return op, true
			}
		}
		o.phase = openingGather
	}
	if o.phase == openingDone {
		return iterate.Op{}, false
	}
	for _, f := range w.faces {
		if f.Scheme.Asynchronous() && !f.TakeOpening() {
			return iterate.Op{Kind: iterate.OpWait}, true
		}
	}
	o.phase = openingDone
	return iterate.Op{Kind: iterate.OpAdapt, Asynchronous: true}, true
}
