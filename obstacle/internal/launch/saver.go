package launch

import "errors"

// Saver writes the checkpoints of a run.
type Saver interface {
	Captures
	// Step is called with the end of every time step, as Plan.Steps.
	Step(m int, u []float64)
	// Watch is called as Plan.Watch.
	Watch(Progress)
	// End writes the checkpoint of a run that has ended before its tolerance, and sets Checkpoint and Resumable of the
	// outcome.
	End(o *Outcome) error
}

// Saved describes the checkpoints that a run has written.
type Saved struct {
	Directory string `json:"directory"`
	Host      string `json:"host"` // of the process that writes them
	Written   int    `json:"written"`
	Step      int    `json:"step"`            // of the last one: complete time steps
	Sweeps    uint64 `json:"sweeps"`          // of the last one: since the first start of the run
	Failed    int    `json:"failed"`          // checkpoints that could not be written
	Error     string `json:"error,omitempty"` // of the last one that could not be written
}

// ErrStopped is the error of a run that was asked to end before its tolerance, and whose checkpoint is written.
var ErrStopped = errors.New("the run was stopped before its tolerance")

// save lets a process that leads the run after a term go on with its checkpoints. It returns nil if there are none.
func (p *Plan) save(term int) Saver {
	if p.Continue == nil || p.Checkpoint.Directory == "" {
		return nil
	}
	s := p.Continue(p, term)
	if s != nil {
		p.Captures, p.Watch = s, s.Watch
		p.Steps = func(m int, _ float64, u []float64) { s.Step(m, u) }
	}
	return s
}
